"""The command: its exit codes, its documents, what it prints, and the check before a study."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.api.launch_check import LaunchCheck, check, checked
from autotune.api.target import find_target
from autotune.check.study_check import StudyCheck
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.targets.request import TargetRequest
from autotune.terminal.launch_check import print_check
from runner.mpi.library import Library
from runner.types import RunRecord
from tests.launch_check.planted import facts_of, planted

PROGRAM = ["sh", "-c", "sleep 1"]


def test_a_line_and_its_probe_as_document(cli: Callable[..., Any], library: Library) -> None:
    outcome = cli("check", "--dry", "--json", "-", library.launcher, "-n", "1", *PROGRAM)
    [launch] = json.loads(outcome.out)["launches"]
    assert launch["started"] == "probe"
    assert launch["mpi"] == f"{library.family} {library.version}"
    assert [rank["rank"] for rank in launch["ranks"]] == [0]
    assert outcome.code == any(one["weight"] in ("wrong", "> 2x") for one in launch["findings"])


def test_the_program_runs_to_its_time_limit(cli: Callable[..., Any], library: Library) -> None:
    words = (library.launcher, "-n", "1", "sh", "-c", "sleep 60")
    outcome = cli("check", "--timeout", "2s", "--json", "-", "--", *words)
    [launch] = json.loads(outcome.out)["launches"]
    assert launch["started"] == "program"
    assert launch["exit_code"] is None
    assert [rank["rank"] for rank in launch["ranks"]] == [0]


def test_a_launcher_that_refuses_has_exit_code_1(cli: Callable[..., Any], library: Library) -> None:
    words = (library.launcher, "--no-such-option", "-n", "1", *PROGRAM)
    outcome = cli("check", "--json", "-", "--", *words)
    [launch] = json.loads(outcome.out)["launches"]
    assert outcome.code == 1
    assert "launch.fails" in [finding["code"] for finding in launch["findings"]]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "check.no_launcher"),
        (("./a.out",), "check.no_launcher"),
        (("--why", "no.such"), "check.code"),
        (("--timeout", "soon", "mpirun", "./a.out"), "time.syntax"),
    ],
    ids=range(4),
)
def test_a_wrong_command_has_exit_code_2(
    cli: Callable[..., Any], words: tuple[str, ...], code: str
) -> None:
    outcome = cli("check", *words)
    assert outcome.code == 2
    assert f"[{code}]" in outcome.err


def test_a_kind_of_finding_is_explained(cli: Callable[..., Any]) -> None:
    outcome = cli("check", "--why", "binding.one_core", "--json", "-")
    assert json.loads(outcome.out)["code"] == "binding.one_core"


@pytest.mark.parametrize("name", ["two-ranks-eight-threads", "program-of-another-library"])
def test_the_answer_in_words(
    name: str, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = checked(facts_of(planted(name)), "--dry")
    print_check(LaunchCheck(script=None, launches=[launch]))
    assert capsys.readouterr().out == snapshot


def test_the_probe_is_the_default_where_the_program_could_write_a_file(
    work: Path, library: Library
) -> None:
    (work / "state.dat").write_text("1")
    [launch] = check([library.launcher, "-n", "1", "cat", "state.dat"]).launches
    assert launch.started == "probe"
    assert "state.dat" in launch.reason


def test_a_script_is_read_and_its_lines_are_probed(work: Path, library: Library) -> None:
    script = work / "job.sh"
    script.write_text(
        f"touch {work}/executed\n{library.launcher} -n 1 touch {work}/run\n"
        f"{library.launcher} -n $UNKNOWN touch {work}/run\n"
    )
    launches = check([str(script)]).launches
    assert [(one.number, one.started) for one in launches] == [(2, "probe"), (3, "nothing")]
    assert sorted(path.name for path in work.iterdir()) == ["job.sh"]


def test_a_file_that_is_no_script_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        check([sys.executable])
    assert refusal.value.code == "check.script"


def test_a_study_hears_of_its_line_once(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    words = (library.launcher, "-n", "1", sys.executable, "-c", "pass")
    target = find_target(TargetRequest(program=words), lambda note: None)
    notes: list[Note] = []
    study_check = StudyCheck(target, None, notes.append)
    study_check.begin()
    assert notes == []
    for _ in range(2):
        study_check.ran(RunRecord("ok", bindings=["0"]))
    assert [note.code for note in notes] == ["binding.one_core"]


@pytest.mark.slow
def test_a_run_says_what_is_wrong_with_its_line(
    cli: Callable[..., Any],
    library: Library,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    program = (sys.executable, "-c", "from mpi4py import MPI; import time; time.sleep(0.5)")
    words = ("--no-guard", "--", library.launcher, "-n", "1", "--bind-to", "core", *program)
    code = "binding.one_core"
    assert code in cli("run", *words).err
    assert code not in cli("run", "--no-check", *words).err
