"""Pages about real studies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.store import Store
from tests.cli.conftest import Cli
from tests.report.test_time_line import LINE
from tests.report.test_traffic import traffic


@pytest.mark.mpi
def test_pages_of_a_study_and_of_its_cluster(
    cli: Cli, library: object, work: Path, steady: str
) -> None:
    searched = cli(
        *("search", "--app", steady, "--input", "tiny", "--no-guard", "--store", "r.db"),
        *("--strategy", "random", "--trials", "3", "--json", "result.json"),
    )
    assert searched.code == 0, searched.err
    result = json.loads((work / "result.json").read_text())
    words = ("--store", "r.db", "--json", "-")
    told = json.loads(cli("report", result["study"][:8], "-o", "s.html", *words).out)
    assert told["figures"] >= 1
    page = (work / "s.html").read_text()
    assert result["study"] in page
    assert f"in {result['search_runs']} runs" in page
    assert steady in page
    Path("line.json").write_text(json.dumps(LINE))
    traffic().save("features.json")
    program = ("--time-line", "line.json", "--features", "features.json")
    told = json.loads(cli("report", result["study"][:8], "-o", "p.html", *program, *words).out)
    assert len(told["sections"]) == 4
    told = json.loads(cli("report", "--cluster", "local", "-o", "c.html", *words).out)
    assert [words.split()[:2] for words in told["sections"][1:]] == [[steady, "tiny"]]


def test_what_cannot_be(cli: Cli, work: Path) -> None:
    Store.open("r.db").close()
    for words, code in (
        ((), "page.subject"),
        (("abcd", "--cluster", "local"), "page.subject"),
        (("abcd", "--dataset", "x"), "page.not_applicable"),
        (("--cluster", "nowhere"), "page.nothing_to_show"),
        (("--cluster", "local", "--time-line", "line.json"), "page.not_applicable"),
        (("abcd", "--time-line", "none.json"), "time_line.unreadable"),
        (("abcd", "--features", "none.json"), "features.unreadable"),
    ):
        outcome = cli("report", *words, "--store", "r.db")
        assert outcome.code == 2
        assert f"[{code}]" in outcome.err
    (work / "report.html").write_text("mine")
    assert cli("report", "--cluster", "local", "--store", "r.db").code == 2
    assert (work / "report.html").read_text() == "mine"
