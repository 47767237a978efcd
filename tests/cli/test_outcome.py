"""Long settings in answers at 80 columns, and what ``show`` and ``studies`` say of a comparison."""

from __future__ import annotations

import json
import re

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from autotune.api.carriers import carried_by
from autotune.comparison.comparison_document import ComparisonFigures
from autotune.notes import Note
from autotune.space import Setting
from autotune.study.search_result import Finalist, Result
from autotune.terminal.command_line import remember_command
from autotune.terminal.outcome import print_comparison, print_result
from autotune.terminal.render import console, table
from autotune.terminal.transports import print_transports
from autotune.wording import Metric, beginning
from runner.types import ReadBack
from tests.cli.conftest import Cli

LONG = Setting(
    {
        "bind_to": "numa",
        "btl_sm_eager_limit": 8192,
        "btl_sm_fbox_max": 4,
        "btl_sm_fbox_size": 1024,
        "coll_tuned_allreduce_algorithm": 5,
        "coll_tuned_allreduce_algorithm_segmentsize": 4096,
        "coll_tuned_bcast_algorithm_knomial_radix": 8,
        "coll_tuned_reduce_scatter_block_algorithm": 4,
    }
)
SHORT = Setting({"bind_to": "numa", "btl_sm_eager_limit": 8192})
NAMES = re.compile(r"[a-z_0-9]+=[a-z0-9]+")


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    remember_command([])


def result(status: str = "keep_default", recommended: Setting | None = None) -> Result:
    """An answer with a short and a long finalist, each of which is named again in the notes."""
    found = Result(
        status=status,  # type: ignore[arg-type]
        recommended=recommended or Setting(),
        study="0123456789ab",
        mpi={"name": "openmpi", "version": "5.0.11"},
        machine="m",
        cluster="local",
        app="a",
        ranks=2,
        strategy="ga",
        seed=0,
    )
    found.finalists = [
        Finalist(SHORT, "better", 1.68, (1.03, 4.33), None, 12, ""),
        Finalist(LONG, "better", 1.60, (1.23, 3.18), None, 12, ""),
    ]
    found.warnings = [
        Note("blocks.scatter", f"{s.key}: the ratio scatters by 19% from block")
        for s in (LONG, SHORT)
    ]
    found.rejections = [{"setting": s.key, "runs": 9, "rejected": 2} for s in (LONG, SHORT)]
    found.best = {"setting": LONG.to_json(), "median_s": 0.1, "n": 3}
    return found


def test_a_long_setting_is_spelled_out_once(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    print_result(result())
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert said.count("btl_sm_fbox_max=4") == 1
    assert {f"{name}={value}" for name, value in LONG.items()} <= set(said.split())
    assert said == snapshot


def test_the_answer_is_not_spelled_out_above_itself(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    print_result(result("recommended", LONG))
    said = capsys.readouterr().out
    assert "btl_sm_fbox_max=4" not in said
    assert "btl_sm_fbox_max = 4" in said
    assert said == snapshot


def test_a_gain_that_is_ruled_out_is_said_once(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    data = ComparisonFigures(
        study="s",
        gain_ci95=None,
        gain_range=None,
        significant=False,
        pairs=8,
        drift_repeats=0,
        words="no gain of 2.0 % or more: gain -0.5 %, 95 % interval -7.4 to +0.7 %, 8 blocks",
        guard=True,
        outcome="futile",
        seen="futile",
        why="a gain of 2 % is ruled out",
        gain=None,
        fresh=None,
        metric=Metric(),
        a_median_s=0.6,
        b_median_s=0.6,
        runs=16,
        runs_rejected=0,
        rejections=[],
        budget_ended_it=False,
        round=1,
        comparisons=1,
        next_step=None,
        checks=None,
        unchecked=[],
        contradictions=[],
        warnings=[],
    )
    print_comparison("default", "bind_to=none", data)
    said = capsys.readouterr().out
    assert said.count("no gain of 2") == 2
    assert data.why not in said
    assert said == snapshot
    print_comparison(
        "default", "bind_to=none", data.model_copy(update={"gain": 0.03, "b_median_s": 0.7})
    )
    assert capsys.readouterr().out == snapshot


def test_names_of_parameters_are_never_broken(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that leaves no room for the figures stands on a line of its own, above them."""
    word = "coll_tuned_reduce_scatter_block_algorithm_segmentsize=1048576"
    columns = ["setting", ">gain", ">95 % interval", ">pairs", "verdict"]
    figures = ["+160.8 %", "+123.8 % .. +318.6 %", "12", "better"]
    console().print(table("", columns, [[f"{word} {word}", *figures], ["a=1", *figures]]))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    row = "  +160.8 %  +123.8 % .. +318.6 %     12  better"
    heading = "      gain         95 % interval  pairs  verdict"
    assert lines == ["setting", heading, word, word, row, "a=1", row]


@pytest.mark.parametrize(("said", "columns"), [("132", 132), ("", 80), ("wide", 80), ("7", 80)])
def test_output_to_a_file_is_as_wide_as_columns_says(
    said: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", said)
    made: Console = console()
    assert made.width == columns


def test_a_setting_in_a_list_is_cut_between_parameters() -> None:
    assert beginning("a=1,b=2,c=3", 11) == "a=1 b=2 c=3"
    assert beginning("a=1,b=2,c=3", 10) == "a=1 and 2 more"
    assert beginning("a=1,b=2,c=3", 20) == "a=1 b=2 c=3"
    assert beginning("aaaa=1,bbbb=2,cccc=3", 18) == "aaaa=1 and 2 more"


def test_what_carried_the_messages_is_printed_in_order(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    back = {
        "pml": ReadBack("in force", "ucx", "ucx"),
        "protocols of MPI_Send within a node": ReadBack("in force", "", "0..92 eager " + "x" * 60),
        "windows": ReadBack("in force", "", "rdma"),
        "transport": ReadBack("in force", "", "ucx: sysv/memory"),
    }
    print_transports({"pml=ucx": carried_by(back), "default": {}})
    assert capsys.readouterr().out == snapshot
    print_transports({"default": {}})
    assert capsys.readouterr().out == ""


@pytest.mark.mpi
def test_show_and_studies_know_a_comparison_and_a_run(
    cli: Cli, library: object, mpi_shell: str
) -> None:
    program = ("--no-guard", "--store", "r.db", "-n", "2", "--", mpi_shell, "true")
    done = cli("compare", "default", "btl_sm_eager_limit=8192", "--runs", "6", *program)
    assert done.code == 0, done.err
    assert cli("run", *program).code == 0
    rows = [line.split() for line in cli("studies", "--store", "r.db").out.splitlines()]
    status = {row[3]: row[6] for row in rows if len(row) == 8}
    assert "new" not in status.values()
    assert status["run"] == "measured"
    study = next(row[0] for row in rows if "compare" in row)
    shown = cli("show", study, "--store", "r.db").out
    answer = done.out.strip().splitlines()
    assert answer[0].startswith("B against A")
    assert "%" in answer[0]
    said = [line for line in answer if not line.startswith(("  autotune ", "to decide it"))]  # data
    assert [line for line in said if line not in shown] == []
    if getattr(library, "family", "") == "openmpi":
        assert "ob1: sm\n" in shown
        assert "ob1: sm\n" in cli("run", *program).out
        data = json.loads(cli("show", study, "--store", "r.db", "--json", "-").out)
        assert data["carried"]["default"] == {"transport": "ob1: sm"}
