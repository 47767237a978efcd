"""What is said of a key that may not stand where it stands."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field

from autotune.config.validated import read_toml, read_what_is_right
from autotune.errors import UsageError


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
    ("text", "told"),
    [
        ("titel = 'x'", "f: titel: unknown key; did you mean 'title'?"),
        ("name = 'x'", "f: name: unknown key here ([tables.NAME] has one); keys here are lines, "),
        ("Name = 'x'", "f: Name: unknown key here ([tables.NAME] has one); keys here are lines, "),
        ("zzz = 'x'", "f: zzz: unknown key; keys here are lines, rows, tables, title"),
        ("[tables.a]\nlevel = 1", "f: tables.a.level: unknown key; did you mean 'levels'?"),
        ("[tables.name]\nlevel = 1", "tables.name.level: unknown key; did you mean 'levels'?"),
        ("[[rows]]\ntitle = 1", "rows.0.title: unknown key here (the top of the file has one)"),
    ],
)
def test_an_unknown_key_is_explained_where_it_stands(text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_toml(text, "f", Outer)
    assert told in str(raised.value)


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
