"""What autotune published is no part of the default; what a site wrote into the same files is."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

from autotune.api.prediction_check import checked_target
from autotune.api.target import find_target
from autotune.cli import main
from autotune.comparison.paired_comparison import ComparisonRequest
from autotune.errors import WorkError
from autotune.notes import Note, Say, unheard
from autotune.publish.install import load_text
from autotune.publish.published_files import forget
from autotune.publish.recheck import recheck
from autotune.publish.verify import FileState
from autotune.space import DEFAULT
from autotune.store import Store
from autotune.targets.request import TargetRequest
from autotune.targets.target import Surroundings, Target
from autotune.testing.format import evidence
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.publish.apps import define_ping_pong
from tests.publish.conftest import put_in_place
from tests.trace.samples import features

pytestmark = pytest.mark.mpi
PUBLISHED, SITE = "btl_sm_eager_limit", "btl_sm_max_send_size"


def target(mpi: Library, say: Say = unheard) -> Target:
    define_ping_pong(Path.cwd(), mpi)
    words = TargetRequest(app="ping-pong", ranks=2, mpi=mpi.bin)
    return find_target(words, say)


def shown(given: Target) -> dict[str, str]:
    """What a run of the default inherits, by the library's own account."""
    with Runner(adapter(given.library), guard=False) as runner:
        record = runner.run(given.spec(None))
    assert record.valid, record.reason
    return record.inherited


@pytest.fixture
def conf(home: Path, work: Path, store: Path, open_mpi: Library) -> Path:
    """A user's parameter file with a line of theirs and autotune's part."""
    path = home / ".openmpi" / "mca-params.conf"
    path.parent.mkdir()
    path.write_text(f"{SITE} = 65536\n")
    put_in_place("openmpi-user", path, open_mpi)
    assert PUBLISHED in path.read_text()
    return path


def test_a_published_file_is_out_of_force(conf: Path, open_mpi: Library) -> None:
    said: list[Note] = []
    given = target(open_mpi, said.append)
    (note,) = [note for note in said if note.code == "published.not_in_force"]
    assert note.data["files"] == [str(conf)]
    key = given.inherited_settings(adapter(given.library))
    assert key == {f"{conf}:{SITE}": "65536"}
    seen = shown(given)
    assert SITE in seen
    assert PUBLISHED not in seen
    # The file itself was not touched, and is in force for everybody else.
    assert PUBLISHED in conf.read_text()


def test_the_key_is_the_one_before_it_was_published(conf: Path, open_mpi: Library) -> None:
    after = target(open_mpi)
    assert main(["unpublish", str(conf)]) == 0
    before = target(open_mpi)
    assert before.surroundings == Surroundings() != after.surroundings
    assert before.inherited_settings(adapter(before.library)) == after.inherited_settings(
        adapter(after.library)
    )
    line = after.mpirun_line(adapter(after.library), None, DEFAULT)
    assert line == before.mpirun_line(adapter(before.library), None, DEFAULT)
    assert "HOME" not in line


@pytest.mark.parametrize("own", [True, False])
def test_a_check_of_a_gain_inherits_what_the_study_did(
    own: bool, conf: Path, store: Path, open_mpi: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the file that it checks, whoever has published it."""
    define_ping_pong(Path.cwd(), open_mpi)
    check = {"app": "ping-pong", "input": None, "ranks": 2}
    put_in_place("openmpi-user", conf, open_mpi, seen=replace(evidence(), check=(check,)))
    if not own:
        forget(conf)
    requests: list[ComparisonRequest] = []

    def noted(request: ComparisonRequest, _: Store) -> Never:
        requests.append(request)
        raise WorkError("noted", code="run.failed")

    monkeypatch.setattr("autotune.publish.recheck.compare_settings", noted)
    text = load_text(conf)
    assert text is not None
    with Store.open(store) as opened:
        recheck([FileState(conf, True, "", text.header)], open_mpi, opened, guard=False)
    (request,) = requests
    seen = shown(request.target)
    assert SITE in seen
    assert PUBLISHED not in seen


def test_a_check_of_a_prediction_inherits_no_published_file(conf: Path, open_mpi: Library) -> None:
    traced = replace(features(), argv=target(open_mpi).program, cwd=str(Path.cwd()))
    request = TargetRequest(mpi=open_mpi.bin)
    seen = shown(checked_target(traced, request, run_recorded=True, is_traced=False, say=unheard))
    assert SITE in seen
    assert PUBLISHED not in seen


def test_variables_of_a_published_script_are_taken_out(
    home: Path,
    work: Path,
    store: Path,
    open_mpi: Library,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_in_place("sh", work / "env.sh", open_mpi)
    monkeypatch.setenv(f"OMPI_MCA_{PUBLISHED}", "8192")
    monkeypatch.setenv(f"OMPI_MCA_{SITE}", "65536")
    given = target(open_mpi)
    assert f"OMPI_MCA_{PUBLISHED}" not in os.environ
    assert given.inherited_settings(adapter(given.library)) == {f"OMPI_MCA_{SITE}": "65536"}
    # Another value of the same variable is somebody's own.
    monkeypatch.setenv(f"OMPI_MCA_{PUBLISHED}", "16384")
    assert f"OMPI_MCA_{PUBLISHED}" in target(open_mpi).inherited_settings(adapter(given.library))


def test_without_published_files_nothing_is_done(home: Path, work: Path, open_mpi: Library) -> None:
    assert target(open_mpi).surroundings == Surroundings()
