"""The library against several senders on each node: what is chosen, said and stored."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult, TablePart
from autotune.collectives.multi_object import (
    FORM,
    FORMS,
    OBJECTS,
    Rivalry,
    RivalSize,
    form_words,
    rival_parameters,
    rival_settings,
)
from autotune.store import Store
from runner.programs.micro.multi_object import OPERATIONS, WORDS
from runner.runtimes.intranode.mcoll.config import AUTO, MCOLL, Config
from runner.runtimes.intranode.publish import main as publish
from tests.cli.conftest import Cli, cli  # noqa: F401


def test_forms_are_those_of_the_micro_benchmark() -> None:
    assert tuple(FORMS) == OPERATIONS
    for operation in OPERATIONS:
        levels = {p.name: p.levels for p in rival_parameters(operation)}
        assert (AUTO, *levels[FORM]) == WORDS[operation]
        for setting in rival_settings(operation, 4):
            assert setting[FORM] in levels[FORM]
            assert setting.get(OBJECTS, 1) in levels[OBJECTS]
    assert [form_words(s) for s in rival_settings("allgather", 6)] == [
        *("bruck", "ring", "bruck k=1", "ring k=1")
    ]
    assert {"rd", "scatter-bruck"} < {s[FORM] for s in rival_settings("allreduce", 8)}


def test_a_comparison_survives_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    row = RivalSize(8, 9.0, 9.0, "bruck", 6.0, 1.5, 1.2, None, "mcoll")
    plain = TablePart("allgather", 4, (Rule("allgather", 4, 0, "0"),), (), 1, 3, 5, ("python",))
    part = dataclasses.replace(plain, multi_object=Rivalry(7, (row,)))
    mpi = {"name": "openmpi", "version": "5.0.8"}
    told = [
        CollectiveResult("local", "abc", mpi, "2026-11-26T10:00:00", (one,), {"allgather": {}})
        for one in (plain, part)
    ]
    assert all(TABLES.read(TABLES.save(one)) == one for one in told)
    assert "multi_object" not in told[0].to_json()["parts"][0]
    assert told[0].id != told[1].id


@pytest.mark.slow
@pytest.mark.mpi
def test_the_command_compares_the_library_with_several_senders(
    cli: Cli,  # noqa: F811
    library: object,
    work: Path,
) -> None:
    words = ("collectives", "--operations", "allgather,bcast", "--ranks", "2", "--sizes", "8,1k")
    words += ("--pairs", "6", "--no-guard", "--mcoll", "--store", "r.db")
    done = cli(*words, "--json", "c.json")
    assert done.code == 0, done.err
    parts = json.loads((work / "c.json").read_text())["parts"]
    found = {part["operation"]: part.get("multi_object") for part in parts}
    assert found["bcast"] is None
    rivalry = found["allgather"]
    assert rivalry["blocks"] >= 6
    assert [row["size"] for row in rivalry["rows"]] == [8, 1024]
    for row in rivalry["rows"]:
        assert row["default_us"] > 0
        assert row["mcoll_us"] > 0
        if row["lo"] is not None and row["lo"] > 1:
            assert row["winner"] == "mcoll"
        elif row["hi"] is not None and row["hi"] < 1:
            assert row["winner"] == "library"
        else:
            assert row["winner"] == ""
    assert f"(mcoll), in {rivalry['blocks']} " in " ".join(done.out.split())
    # What was measured is not measured again.
    again = cli(*words, "--json", "-")
    assert json.loads(again.out)["parts"] == parts
    with Store.open("r.db") as opened:
        phases = [r.phase for study in opened.studies() for r in opened.runs(study.id)]
    assert phases.count("confirm:rivals") >= 2 * rivalry["blocks"]
    # What it says is published as it stands.
    line = next(line for line in done.out.splitlines() if "intranode.publish" in line)
    words = [*line.partition("intranode.publish")[2].split(), "-o", str(work / "mcoll.json")]
    assert publish(words) == 0
    switches = rivalry["switches"]
    assert {"objects", "allgather_switch", "allgather_mpi_from"} == set(switches)
    assert Config(**MCOLL.read(work / "mcoll.json")) == Config(**switches)
