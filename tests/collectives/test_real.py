"""One small table on this machine, to its end; and what is kept of a proof."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult, TablePart
from autotune.collectives.table_proof import SizeEvidence, _proven_entry, at, between, fewest_pairs
from autotune.collectives.tables import SIZES
from autotune.collectives.tournament import TableEntry, Tournament
from autotune.errors import UsageError
from autotune.measurement.run_history import LEAD
from autotune.space import DEFAULT, Setting
from autotune.store import Store
from autotune.wording import HEADLINES
from runner.machine import describe_machine
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.cli.conftest import Cli, cli  # noqa: F401
from tests.refusals import refused

SUFFIXES = (":again", f":{LEAD}")
"""Of the phase of runs measured once more, and of those that each pair follows."""
CHAIN = Setting({"coll_tuned_bcast_algorithm": 2})


def row(size: int, verdict: str) -> SizeEvidence:
    return SizeEvidence(size, CHAIN.key, 0.1, 0.01, 0.2, verdict, False)


@case_table(
    ("verdicts", "stays"),
    [("better better", True), ("better open", True), ("better open open", False),
     ("better worse", False), ("open", False)],
)  # fmt: skip
def test_an_entry_stays_where_it_is_proven(verdicts: str, stays: bool) -> None:
    rows = [row(64 * 2**i, v) for i, v in enumerate(verdicts.split())]
    entries = [TableEntry(8, DEFAULT), TableEntry(64, CHAIN)]
    kept = _proven_entry(entries[1], entries, [row(8, "worse"), *rows])
    assert kept.setting == (CHAIN if stays else DEFAULT)


def test_few_pairs_prove_nothing_at_many_sizes() -> None:
    """2 * 0.5^n must not exceed 5 % shared among the sizes."""
    assert fewest_pairs([64, 72]) == 7
    assert fewest_pairs([64, 1024, 16384, 262144]) == 9
    assert fewest_pairs(SIZES) <= 12


def test_sizes_between() -> None:
    assert between([8, 16, 64, 1024]) == [40, 544]
    assert at([TableEntry(8, DEFAULT), TableEntry(64, CHAIN)], 63) == DEFAULT
    assert at([TableEntry(8, DEFAULT), TableEntry(64, CHAIN)], 544) == CHAIN


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CollectiveResult:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    rules = (Rule("bcast", 4, 0, "0"), Rule("bcast", 4, 4096, "2", 4, 1024))
    part = TablePart("bcast", 4, rules, (row(4096, "better"),), 10, 100, 30, ("python", "-m", "x"))
    return CollectiveResult(
        "local", "abc", {"name": "openmpi", "version": "5.0.8"}, "2026-11-21T10:00:00", (part,),
        {"bcast": {"2": "chain"}},
    )  # fmt: skip


def test_a_result_survives_its_file(result: CollectiveResult) -> None:
    path = TABLES.save(result)
    assert TABLES.read(path) == TABLES.find(result.id[:6]) == TABLES.latest("local") == result
    assert TABLES.latest("elsewhere") is None
    data = json.loads(path.read_text())
    data["parts"][0]["rules"][1]["algorithm"] = "3"
    path.write_text(json.dumps(data))
    with refused(UsageError, "artifact.edited"):
        TABLES.read(path)


def test_beyond_what_was_measured_the_library_decides(result: CollectiveResult) -> None:
    assert result.rules[-1] == Rule("bcast", 5, 0, "0")
    nothing = dataclasses.replace(result.parts[0], rules=(Rule("bcast", 4, 0, "0"),))
    assert dataclasses.replace(result, parts=(nothing,)).rules == ()


def test_a_table_measured_without_the_guard_is_not_proven(
    result: CollectiveResult,
    cli: Cli,  # noqa: F811
    library: Library,
) -> None:
    here = {"name": library.family, "version": library.version}
    told = dataclasses.replace(
        result, machine=describe_machine().fingerprint, mpi=here, guarded=False
    )
    assert (told.has_changes, told.is_proven, result.is_proven) == (True, False, True)
    assert TABLES.read(TABLES.save(told)) == told
    words = ("publish", "--from", f"collectives:{told.id}", "--format", "rules-v1", "--dry-run")
    refused = cli(*words)
    assert refused.code == 2
    assert "[publish.doubtful]" in refused.err
    assert refused.err.count("\n  - ") == 1, "for this reason alone"
    forced = cli(*words, "--force")
    assert forced.code == 0, forced.err
    assert "MEASURED WITHOUT THE GUARD" in forced.out


@pytest.mark.mpi
def test_a_proven_table_is_published_and_obeyed(
    result: CollectiveResult,
    cli: Cli,  # noqa: F811
    library: Library,
    work: Path,
) -> None:
    """The library reads the file to its end: the canary's last rule stops a launch."""
    proven = dataclasses.replace(
        result,
        machine=describe_machine().fingerprint,
        mpi={"name": library.family, "version": library.version},
    )
    TABLES.save(proven)
    words = ("publish", "--from", f"collectives:{proven.id}", "--format", "rules-v1")
    dry = cli(*words, "-o", "x.rules", "--dry-run")
    assert dry.code == 0, dry.err
    assert not (work / "x.rules").exists()
    done = cli(*words, "-o", "x.rules")
    assert done.code == 0, done.err
    assert "seen" in done.out
    looked = cli("verify-published", "x.rules", "--no-compare")
    assert looked.code == 0, looked.err
    assert cli("unpublish", "x.rules").code == 0
    assert not (work / "x.rules").exists()


def test_what_the_budget_left_out_is_part_of_a_result(result: CollectiveResult) -> None:
    cut = dataclasses.replace(result, left_out=("bcast on 8 ranks",))
    assert "left_out" not in result.to_json()
    assert cut.id != result.id
    assert TABLES.read(TABLES.save(cut)) == cut


@pytest.mark.mpi
def test_a_budget_ends_before_the_first_table(cli: Cli, library: object, work: Path) -> None:  # noqa: F811
    """What was measured is kept: the budget holds more the second time."""
    words = ("collectives", "--operations", "bcast", "--ranks", "2", "--sizes", "64,4k")
    words += ("--no-guard", "--store", "r.db")
    done = cli(*words, "--budget", "1s", "--json", "c.json")
    assert done.code == 1
    assert "[budget.too_small]" in done.err
    assert json.loads((work / "c.json").read_text())["code"] == "budget.too_small"
    assert " 1 s " in done.err
    assert "--budget" in done.err
    with Store.open("r.db") as opened:
        (study,) = opened.studies()
    assert study.status == "interrupted"
    assert 1 <= study.runs <= 4


@pytest.mark.slow
@pytest.mark.mpi
def test_a_search_and_its_proof_are_two_studies(
    cli: Cli,  # noqa: F811
    library: object,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proof's runs are filed as such, and nothing is measured a second time.

    Whatever the search saw, there is a table to prove.
    """
    monkeypatch.setattr(Tournament, "table", lambda self: [TableEntry(8, self.candidates[0])])
    words = ("collectives", "--operations", "gather", "--ranks", "2", "--sizes", "8,64")
    words += ("--pairs", "6", "--min-gain", "0", "--no-guard", "--store", "r.db")
    done = cli(*words, "--json", "c.json")
    assert done.code == 0, done.text
    part = json.loads((work / "c.json").read_text())["parts"][0]
    with Store.open("r.db") as opened:
        studies = opened.studies()
        phases = [[r.phase for r in opened.runs(study.id)] for study in studies]
    assert len(studies) == 2
    proof, search = sorted(phases, key=lambda found: "confirm:table" not in found)
    assert {phase.split(":")[0] for phase in search} == {"warmup", "default", "search"}
    assert {phase.removeprefix("confirm:table") for phase in proof} <= {"warmup", "", *SUFFIXES}
    assert proof.count("confirm:table") >= 2 * 6
    assert [row["size"] for row in part["evidence"]] == [8, 32, 64]
    assert part["launches"] == len(proof) + len(search)
    again = cli(*words, "--json", "-")
    assert again.code == 0, again.text
    assert json.loads(again.out)["parts"] == [part]
    with Store.open("r.db") as opened:
        assert sum(len(opened.runs(s.id)) for s in opened.studies()) == part["launches"]


@pytest.mark.slow
@pytest.mark.mpi
def test_a_table_from_beginning_to_end(cli: Cli, library: object, work: Path) -> None:  # noqa: F811
    done = cli(
        *("collectives", "--operations", "bcast", "--ranks", "2", "--sizes", "64,4k,64k"),
        *("--pairs", "6", "--no-guard", "--store", "r.db", "--json", "c.json"),
    )
    assert done.code == 0, done.err
    data = json.loads((work / "c.json").read_text())
    part = data["parts"][0]
    assert part["operation"] == "bcast"
    assert data["guarded"] is False
    assert data["mpi_choice"]["reason"] == "mpi4py"
    assert HEADLINES["unguarded"] in done.out
    assert 0 < part["points"] <= part["grid"]
    assert part["rules"][0]["message"] == 0
    with Store.open("r.db") as opened:
        kinds = [{r.phase.split(":")[0] for r in opened.runs(s.id)} for s in opened.studies()]
    assert {"warmup", "default", "search"} in kinds
    assert [k for k in kinds if k != {"warmup", "default", "search"}] in (
        [],
        [{"warmup", "confirm"}],
    )

    # The same again finds everything stored, and says the same.
    def runs() -> int:
        with Store.open("r.db") as opened:
            return sum(len(opened.runs(study.id)) for study in opened.studies())

    before = runs()
    again = cli(
        *("collectives", "--operations", "bcast", "--ranks", "2", "--sizes", "64,4k,64k"),
        *("--pairs", "6", "--no-guard", "--store", "r.db", "--json", "-"),
    )
    assert again.code == 0, again.err
    assert json.loads(again.out)["parts"] == data["parts"]
    assert before == runs() == part["launches"]
    for words in (("--ranks", "1"), ("--ranks", "x"), ("--operations", "scan"), ("--sizes", "8")):
        assert cli("collectives", *words, "--store", "r.db").code == 2
