"""What is said of a key that may not stand where it stands."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field
from syrupy.assertion import SnapshotAssertion

from autotune.config.validated import read_toml, read_what_is_right
from autotune.errors import UsageError
from tests.refusals import refused


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""
    levels: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str = ""
    tables: dict[str, Inner] = {}
    rows: list[Inner] = []
    lines: Annotated[tuple[Inner, ...], Field(min_length=1)] = (Inner(),)


@pytest.mark.parametrize(
    "text",
    [
        "titel = 'x'",
        "name = 'x'",
        "Name = 'x'",
        "zzz = 'x'",
        "[tables.a]\nlevel = 1",
        "[tables.name]\nlevel = 1",
        "[[rows]]\ntitle = 1",
    ],
    ids=["near", "of-a-table", "capital", "far", "in-a-table", "named-as-a-key", "of-the-top"],
)
def test_an_unknown_key_is_explained_where_it_stands(
    text: str, snapshot: SnapshotAssertion
) -> None:
    with refused(UsageError, "config.invalid") as raised:
        read_toml(text, "f", Outer)
    assert str(raised.value) == snapshot


def test_a_table_with_a_mistake_in_it_is_no_second_mistake() -> None:
    with pytest.raises(UsageError) as raised:
        read_toml("[[lines]]\nlevels = 'x'", "f", Outer)
    (line,) = str(raised.value).splitlines()
    assert line.startswith("f: lines.0.levels: ")


def test_the_rest_of_a_file_is_read() -> None:
    text = "zzz = 1\n[[rows]]\nname = 1\n[[rows]]\nlevels = 2\n[[rows]]\nlevels = 'x'\n"
    found, told, left_out = read_what_is_right(text, "f", Outer)
    assert found is not None
    assert [row.levels for row in found.rows] == [2]
    assert len(told) == 3
    assert left_out == {"0", "2", "zzz"}
