"""The three commands as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.anova.class_proof import ClasswideProof
from autotune.anova.class_pruning import ClassPruning
from autotune.anova.classwide_result import RESULTS, ProgramEvidence
from autotune.anova.table import CellFacts
from autotune.api.target import find_target
from autotune.space import DEFAULT
from autotune.targets.request import TargetRequest
from autotune.terminal.classwide import print_proof
from tests.anova.conftest import TRUTH, write
from tests.cli.conftest import Cli, cli
from tests.conftest import Library
from tests.mpis import built

__all__ = ["cli"]
CLASSWIDE = ("classwide", "three", "--no-measure", "--apps")


def test_anova_prints_a_value_or_a_dash(cli: Cli, recorded: Path) -> None:
    outcome = cli("anova", "three", "--by", "app", "--picture", "a.html", "--json", "a.json")
    assert outcome.code == 0, outcome.text
    assert "eager=4 links=2" in outcome.out
    assert max(len(line) for line in outcome.out.splitlines()) <= 80
    data = json.loads(Path("a.json").read_text())
    assert data["setting"] == {"eager": 4, "links": 2}
    assert data["stability"][0]["chosen"]["eager"] == 4
    page = Path("a.html").read_text()
    assert page.count("<svg") == 2
    for namespace in ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"):
        page = page.replace(namespace, "")
    assert "http:" not in page
    assert "https:" not in page


def test_importance_of_a_dataset(cli: Cli, recorded: Path) -> None:
    outcome = cli("importance", "--from", "three", "--picture", "i.html", "--json", "-")
    assert outcome.code == 0, outcome.text
    data = json.loads(outcome.out)
    assert data["parameters"][0]["name"] == "eager"
    assert Path("i.html").read_text().count("<svg") > 4


def test_classwide_without_runs_is_stored_as_unproven(cli: Cli, recorded: Path) -> None:
    outcome = cli("classwide", "--from", "three", "--no-measure", "--json", "c.json")
    assert outcome.code == 0, outcome.text
    assert "[usage.source]" in cli("classwide", "three", "--from", "two").err
    assert "[usage.source]" in cli("anova").err
    data = json.loads(Path("c.json").read_text())
    assert data["status"] == "unproven"
    assert data["setting"]["eager"] == 4
    assert not RESULTS.find(data["id"]).proven


def test_why_there_is_no_interval_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"ranks": 2, "cluster": "local", "held_out": False, "study": ""}
    open_end = {"gain": 0.1, "lo": 0.03, "hi": None, "pairs": 9, "verdict": "passed", "words": ""}
    none = {"gain": None, "lo": None, "hi": None, "pairs": 0, "verdict": "open"}
    rows = (
        ProgramEvidence(app="one", input="small", **given, **open_end),
        ProgramEvidence(app="two", input=None, **given, **none, words="the budget was spent"),
    )
    proof = ClasswideProof(
        False,
        DEFAULT,
        "",
        0.02,
        None,
        None,
        None,
        rows,
        ClassPruning(DEFAULT),
        "",
        cut_short=True,
    )
    print_proof(proof, has_guard=True)
    said = capsys.readouterr().out
    assert "+3.0 %" in said
    (line,) = [line for line in said.splitlines() if line.startswith("two: ")]
    assert line.endswith("the budget was spent")
    assert " - " not in said.partition("two")[2].partition("\n")[2]


def test_what_slows_a_program_left_out_is_not_chosen(cli: Cli) -> None:
    """Issue 24, point 14: one cell was slower, and the share was 138 %."""
    recorded = Path(__file__).parents[2] / "datasets" / "explore-testbed"
    outcome = cli("classwide", recorded, "--no-measure", "--commutative-only", "--json", "c.json")
    assert outcome.code == 0, outcome.text
    data = json.loads(Path("c.json").read_text())
    rows = {row["name"]: row for row in data["scores"]}
    # Its own setting slows no cell; what it chose without one of the programs slows that one.
    assert rows["direct"]["slower_cells"] == 0
    assert rows["direct"]["held_out_slower_cells"] == 1
    assert (data["status"], data["setting"]) == ("keep_default", {})
    assert max(row["share"] for row in data["scores"]) <= 1
    said = " ".join(outcome.out.split())
    assert "direct: 1" in said
    assert max(len(line) for line in outcome.out.splitlines() if "result" not in line) <= 80


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["anova", "nothing"], "dataset.unknown", "nothing"),
        (["anova", "three", "--preset", "best"], "usage.unknown_word", "thesis"),
        (["anova", "three", "--level", "12"], "usage.range", "99.9"),
        (["anova", "three", "--by", "ranks"], "dataset.one_part", "ranks"),
        (["anova", "study:feed"], "study.unknown", "feed"),
        (["importance", "three", "--cell", "fourth"], "dataset.cell_unknown", "first-small"),
        (["importance", "nothing"], "study.unknown", "nothing"),
        (["classwide", "--from", "study:feed"], "classwide.of_study", "study:feed"),
        (
            [*CLASSWIDE, "fourth"],
            "dataset.app_unknown",
            "third",
        ),
        (
            [*CLASSWIDE, ","],
            "classwide.no_program",
            "--apps A,B",
        ),
        (
            [*CLASSWIDE, "first", "--held-out", "first"],
            "classwide.held_out",
            "first",
        ),
    ],
)
def test_mistakes_are_one_clear_message(
    cli: Cli, recorded: Path, words: list[str], code: str, said: str
) -> None:
    outcome = cli(*words)
    assert outcome.code == 2, outcome.text
    assert f"[{code}]" in outcome.err
    assert said in outcome.err


def test_a_margin_of_nothing_is_refused(cli: Cli, recorded: Path) -> None:
    outcome = cli("classwide", "three", "--margin", "0", "--no-measure")
    assert outcome.code == 2, outcome.text
    assert "--margin" in outcome.err


PROGRAM = """
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Far from one run to the next: a factor of 4.5 at one standard deviation. */
static double wild(void) {
    srand48(getpid());
    double length = sqrt(-2 * log(1 - drand48()));
    return exp(1.5 * length * cos(2 * M_PI * drand48()));
}

int main(int count, char **words) {
    int eager = 0, links = 0, rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < count; i++) {
        if (!strcmp(words[i], "--eager")) eager = atoi(words[i + 1]);
        if (!strcmp(words[i], "--links")) links = atoi(words[i + 1]);
    }
    double seconds = (eager == 4 ? 0.8 : 1.0) * (links == 2 ? 0.9 : 1.0);
    if (rank == 0) printf("{\\"seconds\\": %.9g}\\n", seconds * (SLOW));
    MPI_Finalize();
    return eager < 0 ? (int)wild() : 0;
}
"""


def application(library: Library, name: str, slow: str) -> None:
    """An application whose figure follows from its options, so that the truth is known."""
    place = Path("configs/apps")
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(name).absolute()
    folder.mkdir()
    program = built(library, folder, PROGRAM.replace("SLOW", slow), "-lm")
    (place / f"{name}.toml").write_text(
        f'name = "{name}"\ncommand = ["{program}"]\n'
        'metric = "json:seconds"\ndefault_ranks = 1\n[inputs.small]\n[inputs.default]\n'
    )


@pytest.mark.slow
@pytest.mark.mpi
def test_a_setting_is_proven_on_every_program(
    cli: Cli, work: Path, library: Library, quiet: None
) -> None:
    write(Path("datasets/one"), [CellFacts("first", "first", "small", 2)], TRUTH)
    application(library, "first", "1.0")
    application(library, "other", "2.0")
    line = ["classwide", "one", "--space", "datasets/one/spaces/first.toml"]
    line += ["--no-prune", "--pairs", "6", "--held-out", "other", "--json", "c.json"]
    outcome = cli(*line)
    assert outcome.code == 0, outcome.text
    data = json.loads(Path("c.json").read_text())
    assert data["status"] == "recommended", outcome.text
    assert data["gain"] == pytest.approx(1 / 0.72 - 1, rel=0.01)
    assert data["margin"] == 0.02
    assert data["held_out_shows"] == "gain"
    assert data["not_pruned"] == ["eager", "links"]
    assert [row["verdict"] for row in data["evidence"]] == ["passed", "passed"]
    for figure in ("2 %", "eager", "links"):
        assert figure in outcome.out
    assert [row["held_out"] for row in data["evidence"]] == [False, True]
    assert RESULTS.find(data["id"]).proven


@pytest.mark.mpi
def test_without_the_guard_no_setting_is_proven(cli: Cli, work: Path, library: Library) -> None:
    write(Path("datasets/one"), [CellFacts("first", "first", "small", 2)], TRUTH)
    application(library, "first", "1.0")
    line = ["classwide", "one", "--space", "datasets/one/spaces/first.toml", "--no-guard"]
    outcome = cli(*line, "--no-prune", "--pairs", "6", "--json", "c.json")
    assert outcome.code == 0, outcome.text
    data = json.loads(Path("c.json").read_text())
    assert data["status"] == "unguarded"
    assert data["setting"]["eager"] == 4
    assert [row["verdict"] for row in data["evidence"]] == ["unguarded"]
    assert not RESULTS.find(data["id"]).proven
    said = " ".join(outcome.out.split())
    assert "unguarded" in said
    assert "passed" not in said
    assert "--no-guard" in said
    # The latest proven result is published where none is named: this is none.
    assert cli("publish", "--dry-run").code == 2
    named = cli("publish", "--from", f"classwide:{data['id']}", "--dry-run")
    assert named.code == 2


@pytest.mark.mpi
@pytest.mark.slow
def test_a_program_that_slows_down_stops_the_recommendation(
    cli: Cli, work: Path, library: Library, quiet: None
) -> None:
    write(Path("datasets/one"), [CellFacts("first", "first", "small", 2)], TRUTH)
    application(library, "first", "1.0")
    application(library, "other", "eager == 4 ? 2.0 : 1.0")
    line = ["classwide", "one", "--space", "datasets/one/spaces/first.toml"]
    line += ["--no-prune", "--pairs", "6", "--held-out", "other", "--json", "c.json"]
    outcome = cli(*line)
    assert outcome.code == 0, outcome.text
    data = json.loads(Path("c.json").read_text())
    assert data["status"] == "keep_default"
    assert data["setting"] == {}
    assert {row["app"]: row["verdict"] for row in data["evidence"]}["other"] == "slower"
    assert "other" in data["why"]
    assert data["held_out_shows"] == "loss"


@pytest.mark.slow
@pytest.mark.mpi
def test_more_runs_are_asked_for_where_a_program_is_open(
    cli: Cli, work: Path, library: Library, quiet: None
) -> None:
    write(Path("datasets/one"), [CellFacts("first", "first", "small", 2)], TRUTH)
    application(library, "first", "wild()")
    line = ["classwide", "one", "--space", "datasets/one/spaces/first.toml"]
    line += ["--no-prune", "--pairs", "6", "--margin", "1.5", "--json", "c.json"]
    outcome = cli(*line)
    assert outcome.code == 0, outcome.text
    data = json.loads(Path("c.json").read_text())
    assert data["status"] == "keep_default"
    assert data["margin"] == 0.015
    assert [(row["app"], row["verdict"]) for row in data["evidence"]] == [("first", "open")]
    assert "first" in data["why"]
    assert "first" in data["next_step"]
    assert data["next_step"] in " ".join(outcome.out.split())


@pytest.mark.mpi
@pytest.mark.slow
def test_parameters_that_do_nothing_are_taken_out(cli: Cli, work: Path, library: Library) -> None:
    from autotune.anova.class_pruning import prune
    from autotune.anova.paired_runs import ClassProgram, PairTerms, on_machine
    from autotune.space import Setting
    from autotune.store import Store
    from tests.anova.conftest import SPACE

    application(library, "first", "1.00037")  # A figure of one decimal hides a loss of 2 %.
    words = TargetRequest(app="first", input="small", ranks=2)
    program = ClassProgram(find_target(words), SPACE, held_out=False)
    with Store.open(work / "r.db") as store:
        terms = PairTerms(on_machine(store), prune_looks=(7,), guard=False)
        given = Setting({"eager": 4, "idle": 1})
        found = prune(given, [program], terms)
    assert found.setting == Setting({"eager": 4})
    assert found.without == ("idle",)
    assert found.unclear == ()
