"""Own formats are obeyed by the MPI here; a format that loads nothing passes no suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.api.publication import format_list
from autotune.publish.formats import ALL, GROUP, Format, find
from autotune.publish.formats.scripts import Script
from autotune.testing import FormatContract, ObeyedContract
from runner.mpi.library import Library
from tests.mpis import library_named

IDLE = """
from autotune.publish.formats import Format, Loading
from autotune.publish.formats.base import assignments


class Idle(Format):
    name = "idle"
    summary = "a file that no launch loads"
    suffix = ".idle"

    def part(self, content, library):
        return content.only("mca")

    def body(self, content, library):
        return assignments(content.groups.get("mca", {}))

    def live(self, path, library):
        return Loading()


class Loaded(Idle):
    name = "loaded"
    summary = "the same file, loaded by --tune"
    family = "openmpi"

    def body(self, content, library):
        values = content.groups.get("mca", {})
        return "".join(f"--mca {n} {v}\\n" for n, v in values.items())

    def live(self, path, library):
        return Loading(options=("--tune", str(path.absolute())))
"""


LIBRARIES = {"": "openmpi-5.0.11", "openmpi": "openmpi-5.0.11", "mpich": "mpich", "impi": "impi"}
TRIED = [one for one in ALL if one.name != "rules-v3"]  # There is no Open MPI 6 to read it.


@pytest.mark.mpi
class TestObeyed(ObeyedContract):
    @pytest.fixture(
        params=[
            pytest.param(one, id=one.name, marks=() if one.name == "tune" else pytest.mark.slow)
            for one in TRIED
        ]
    )
    def fmt(self, request: pytest.FixtureRequest) -> Format:
        one = request.param
        assert isinstance(one, Format)
        if isinstance(one, Script) and one.interpreter() is None:
            pytest.skip(f"none of {', '.join(one.interpreters)} is installed")
        return one

    @pytest.fixture
    def library(self, fmt: Format) -> Library:
        return library_named(LIBRARIES[fmt.family])


@pytest.mark.mpi
def test_a_format_that_loads_nothing_is_found_out(
    open_mpi: Library,
    package: Callable[[str, str, str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package(GROUP, "idle = idle_formats:Idle\nloaded = idle_formats:Loaded", IDLE)
    fmt = find("idle")
    with pytest.raises(AssertionError):
        FormatContract().test_a_launch_loads_the_private_copy(fmt, tmp_path, monkeypatch)
    rows = {row.format: row.cannot_be_proven for row in format_list(open_mpi)}
    assert rows["loaded"] is None
    assert "idle" in (rows["idle"] or "")
