"""The setting of a study is published, obeyed and undone by the benchmark of centres' programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.centre_programs import ProgramSearch, parser, published
from runner.mpi.library import Library
from tests.publish.conftest import LAUNCHED, MakeStudy


@pytest.mark.slow
@pytest.mark.mpi
def test_a_setting_is_published_obeyed_and_undone(
    store: Path, make_study: MakeStudy, open_mpi: Library
) -> None:
    study = make_study(LAUNCHED, version=open_mpi.version).removeprefix("study:")
    words = ["--keep", str(store.parent), "--check-budget", "10s", "--no-guard"]
    search = ProgramSearch("jacobi3d", "tiny", "mpi", "ga")
    found = published(parser().parse_args(words), search, study)
    assert (found["in_force"], found["undone"]) == (True, True)
    (file,) = found["files"].values()
    assert Path(file).is_relative_to(store.parent)
    assert len(found["checks"]) == 1
