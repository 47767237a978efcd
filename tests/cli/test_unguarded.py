"""Issue 24, point 4: what was measured without the guard proves nothing, and says so everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.measurement.budget import SearchPlan
from autotune.publish.header import read_header
from autotune.store import Store
from autotune.wording import HEADLINES, LOOKS_BETTER, UNGUARDED
from tests.cli.conftest import Cli

pytestmark = pytest.mark.mpi
PROGRAM = """
s=1000
test -z "$OMPI_MCA_btl_self_eager_limit" || s=0800
echo x >> runs-$s
runs=$(wc -l < runs-$s)
echo time 0.$s$((runs * runs * 37 % 89 + 10))
"""
"""The figure is 25 % better with the parameter, whatever the machine does; its noise is that of
a number of runs."""


@pytest.fixture
def line(work: Path, mpi_shell: str) -> list[str]:
    """The end of a command: a space of one parameter, and the program."""
    space = work / "configs" / "spaces" / "one.toml"
    space.parent.mkdir(parents=True)
    space.write_text("[parameters.btl_self_eager_limit]\nlevels = [8192]\n")
    words = ["--space", "one", "--metric", "time ([0-9.]+)", "--store", "r.db"]
    return [*words, "--ranks", "1", "--", mpi_shell, PROGRAM]


def one_line(text: str) -> str:
    return " ".join(text.split())


SEARCH = ("search", "--runs", "45")
SAID = UNGUARDED


def test_nothing_is_proven_without_the_guard(
    cli: Cli, open_mpi: object, line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The figures do not depend on the machine; the wall time does, and so would the limit.
    monkeypatch.setattr(SearchPlan, "run_limit_s", lambda *_: None)
    words = ("--runs", "32", "--no-guard", "--json", "r.json", "--params-file", "p.conf")
    done = cli("search", *words, *line)
    assert done.code == 0, done.text
    result = json.loads(Path("r.json").read_text())
    assert (result["status"], result["guard"]) == ("unguarded", False)
    assert (result["recommended"], result["gain"]) == ({"setting": {}}, None)
    assert result["significant"] is False
    assert result["best"]["setting"] == {"btl_self_eager_limit": 8192}
    assert [row["outcome"] for row in result["rounds"]] == [LOOKS_BETTER]
    said = one_line(done.out)
    assert HEADLINES["unguarded"] in said
    assert LOOKS_BETTER in said
    assert HEADLINES["recommended"] not in said
    assert "mpirun" not in done.out
    assert f"# {SAID.upper()}, NOT PROVEN" in Path("p.conf").read_text()

    study = result["study"]
    for words in (("show", study), ("status", study), ("studies",)):
        told = one_line(cli(*words, "--store", "r.db").out)
        assert SAID in told.lower() or " unguarded " in told, told
        assert "recommended" not in told
    page = cli("report", study, "-o", "s.html", "--store", "r.db")
    assert page.code == 0
    assert HEADLINES["unguarded"] in Path("s.html").read_text()

    publish = ("publish", "--from", f"study:{study}", "--format", "tune", "-o", "t.conf")
    refused = cli(*publish, "--store", "r.db")
    assert refused.code == 2
    assert SAID in one_line(refused.err)
    assert "--force" in refused.err
    assert not Path("t.conf").exists()
    forced = cli(*publish, "--force", "--store", "r.db")
    assert forced.code == 0, forced.text
    text = Path("t.conf").read_text()
    header = read_header(text)
    assert header is not None
    assert (header.evidence.guarded, header.evidence.proven) == (False, False)
    assert SAID.upper() in text
    looked = cli("verify-published", "t.conf", "--no-compare", "--store", "r.db")
    assert f"{SAID} " in one_line(looked.out)
    assert "--force" in looked.out


@pytest.mark.slow
def test_with_the_guard_it_is_a_study_of_its_own(
    cli: Cli, open_mpi: object, line: list[str], quiet: None
) -> None:
    """What the same command proves with the guard rests on no run that was made without it."""
    assert cli("compare", "default", "btl_self_eager_limit=8192", "--no-guard", *line).code == 0
    done = cli(*SEARCH, "--json", "r.json", *line)
    assert done.code == 0, done.text
    result = json.loads(Path("r.json").read_text())
    assert (result["status"], result["guard"]) == ("recommended", True)
    assert result["recommended"]["setting"] == {"btl_self_eager_limit": 8192}
    assert " +25" in Path(result["params_file"]).read_text()
    told = one_line(cli("status", result["study"], "--store", "r.db").out)
    assert HEADLINES["recommended"] in told
    assert "btl_self_eager_limit=8192: +25" in told
    assert told.count("btl_self_eager_limit") == 1
    # The same study, begun again without the guard, has no trial yet: nothing is shared.
    cli("search", "--no-guard", "--trials", "1", "--runs", "32", *line)
    with Store.open("r.db") as store:
        kinds = {(s.strategy, store.get_study(s.id).key.has_guard) for s in store.studies()}
    assert kinds == {("compare", False), ("auto", True), ("auto", False)}


@pytest.mark.slow
def test_a_comparison_says_so_too(cli: Cli, open_mpi: object, line: list[str]) -> None:
    words = ("compare", "default", "btl_self_eager_limit=8192", "--pairs", "12")
    done = cli(*words, "--no-guard", "--json", "c.json", *line)
    assert done.code == 0, done.text
    data = json.loads(Path("c.json").read_text())
    assert (data["outcome"], data["seen"], data["guard"]) == ("unguarded", "better", False)
    assert data["significant"] is False
    assert SAID in one_line(done.out)
    assert LOOKS_BETTER in done.out
    assert "unguarded" in cli("studies", "--store", "r.db").out


@pytest.mark.slow
def test_one_worker_without_the_guard_is_refused(
    cli: Cli, open_mpi: object, line: list[str], quiet: None
) -> None:
    assert cli("search", "--join", "--trials", "1", "--runs", "32", *line).code == 0
    refused = cli("worker", "1", "--no-guard", "--store", "r.db")
    assert refused.code == 2
    assert "[worker.other_guard]" in refused.err
    assert cli("worker", "1", "--store", "r.db").code == 0
