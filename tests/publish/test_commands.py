"""``publish``, ``unpublish`` and ``verify-published`` as a user meets them, without launches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.publish.formats.scripts import Csh
from autotune.store import AppInfo
from runner.mpi.library import Library
from tests.publish.conftest import MakeStudy, put_in_place

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def _place(open_mpi: Library, home: Path, work: Path, store: Path) -> None:
    """The commands look for an MPI; every file goes into a private place."""


@pytest.fixture
def no_csh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No C shell is installed, so that its files are written without test runs."""
    monkeypatch.setattr(Csh, "interpreters", ("no-such-shell",))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["publish"], "no proven class-wide result"),
        (["publish", "-f", "tuen"], "did you mean tune?"),
        (["publish", "-f", "tune"], "no proven class-wide result"),
        (["publish", "-f", "tune", "--from", "study:abcdef"], "no study"),
        (["publish", "-f", "tune", "--from", "x"], "study:ID"),
        (["publish", "-f", "tune", "--cluster", "nowhere"], "nowhere"),
        (["unpublish"], "no file given"),
        (["unpublish", "missing.conf"], "does not exist"),
        (["verify-published"], "no file is published; expected"),
        (["verify-published", "missing.conf"], "does not exist"),
    ],
)
def test_mistakes_are_one_message(words: list[str], said: str, capfd: Capture) -> None:
    assert main(words) == 2
    err = capfd.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_a_dry_run_and_a_difference_write_nothing(
    make_study: MakeStudy, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    words = ["publish", "--from", make_study(version=open_mpi.version), "-f", "tune"]
    before = sorted(work.iterdir())
    assert main([*words, "--dry-run"]) == 0
    assert "--mca btl_sm_eager_limit 8192" in capfd.readouterr().out
    assert main([*words, "--diff"]) == 0
    assert "+--mca btl_sm_eager_limit 8192" in capfd.readouterr().out
    assert sorted(work.iterdir()) == before


def test_unproven_formats_are_written_on_demand_and_labelled(
    make_study: MakeStudy, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    source = make_study({"mca": {"coll_tuned_bcast_algorithm": "6"}}, version=open_mpi.version)
    words = ["publish", "--from", source, "-f", "rules-v3", "-o", "r.json"]
    assert main(words) == 2
    assert "--unproven" in capfd.readouterr().err
    assert main([*words, "--unproven"]) == 0
    assert "UNPROVEN" in capfd.readouterr().out
    assert json.loads((work / "r.json").read_text())["rule_file_version"] == 3
    assert "UNPROVEN" in (work / "r.json.autotune").read_text()
    assert main(["unpublish", "r.json"]) == 0
    assert not list(work.glob("r.json*"))


def test_unpublish_takes_its_block_out_and_leaves_a_line_below_it(
    home: Path, open_mpi: Library, capfd: Capture
) -> None:
    path = home / ".openmpi" / "mca-params.conf"
    path.parent.mkdir()
    put_in_place("openmpi-user", path, open_mpi)
    with path.open("a") as file:
        file.write("btl_tcp_links = 2\n")
    block = path.read_text()
    path.write_text(block.replace("= 8192", "= 4096"))
    capfd.readouterr()
    assert main(["unpublish", str(path)]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "'btl_sm_eager_limit = 4096', where autotune would write" in said
    path.write_text(block)
    assert main(["unpublish", str(path)]) == 0
    assert "its other lines stay" in " ".join(capfd.readouterr().out.split())
    assert path.read_text() == "btl_tcp_links = 2\n"


def test_a_file_that_cannot_be_undone_holds_up_no_other(
    home: Path, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    for name in ("a.tune", "b.tune", "c.tune"):
        put_in_place("tune", work / name, open_mpi)
    with (work / "b.tune").open("a") as file:
        file.write("--mca mine 1\n")
    capfd.readouterr()
    assert main(["unpublish", "--all", "--json", "out.json"]) == 2
    seen = capfd.readouterr()
    assert "edited after autotune published" in seen.err
    assert "b.tune was edited after" in seen.err
    assert "'--mca mine 1', where autotune would write nothing" in " ".join(seen.err.split())
    assert sorted(path.name for path in work.glob("*.tune")) == ["b.tune"]
    assert len(json.loads((work / "out.json").read_text())["files"]) == 2
    assert main(["unpublish", "--all", "--force"]) == 0


def test_the_formats_are_listed_with_what_can_be_proven(capfd: Capture) -> None:
    assert main(["publish", "--formats", "--json", "-"]) == 0
    rows = {row["format"]: row["cannot_be_proven"] for row in json.loads(capfd.readouterr().out)}
    assert rows["openmpi-user"] is None
    assert "6.0" in rows["rules-v3"]
    assert main(["publish", "--formats"]) == 0
    said = capfd.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "rules-v3: Open MPI reads it from 6.0 on" in said, "why not, too"


def test_a_file_of_others_is_not_verified(work: Path, capfd: Capture) -> None:
    (work / "x.conf").write_text("a = 1\n")
    assert main(["verify-published", "x.conf"]) == 2
    assert "not published by autotune" in capfd.readouterr().err


def test_what_cron_does_not_find_is_said(
    make_study: MakeStudy,
    no_csh: None,
    work: Path,
    open_mpi: Library,
    monkeypatch: pytest.MonkeyPatch,
    capfd: Capture,
) -> None:
    """A cluster of ./configs: told when it is published, and where to put it when it is missing."""
    (work / "configs/clusters").mkdir(parents=True)
    (work / "configs/clusters/mine.toml").write_text('name = "mine"\n')
    source = make_study(version=open_mpi.version)
    words = ["publish", "--from", source, "-f", "csh", "--unproven", "--force", "--cluster", "mine"]
    assert main(words) == 0, capfd.readouterr().err
    said = capfd.readouterr().out
    assert "did you mean --cluster local?" in " ".join(said.split())
    assert (
        "note [publish.local_config]: configs/clusters/mine.toml is found from this directory only"
        in said
    )
    monkeypatch.chdir("/")
    assert main(["verify-published"]) == 1
    said = " ".join(capfd.readouterr().out.split())
    assert f"not checked: {work}/autotune-mine.csh" in said
    assert "autotune/clusters to be found from anywhere" in said
    assert "NOT in force" not in said
    assert "remove the file with autotune unpublish" not in said


def test_a_lost_file_does_not_keep_others_from_being_compared(
    make_study: MakeStudy, no_csh: None, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    for name, app, digest in (("one.csh", "first", "ab"), ("two.csh", "second", "cd")):
        program = AppInfo(app, "/nowhere/program", digest * 32, (), None, None, None)
        study = make_study(version=open_mpi.version, app=program)
        words = ["publish", "--from", study, "-f", "csh", "--unproven", "--force", "-o", name]
        assert main(words) == 0, capfd.readouterr().err
    text = (work / "one.csh").read_text()
    (work / "one.csh").write_text(text.replace("8192", "4096"))
    capfd.readouterr()
    assert main(["verify-published"]) == 1
    said = " ".join(capfd.readouterr().out.split())
    assert f"NOT in force: {work}/one.csh" in said
    assert f"not compared: {study} on second" in said
    assert "on first" not in said


def test_a_parameter_file_that_nothing_reads_is_said_to_be_one(
    make_study: MakeStudy, work: Path, home: Path, open_mpi: Library, capfd: Capture
) -> None:
    (work / "etc").mkdir()
    source = make_study({"mca": {"mpi_yield_when_idle": "1"}}, version=open_mpi.version)
    assert main(["publish", "--from", source, "-f", "openmpi-user", "-o", "etc"]) == 0
    said = capfd.readouterr()
    assert (
        f"no library reads {work}/etc/mca-params.conf; install it where this library reads"
        in said.out
    )
    assert f"{home}/.openmpi/mca-params.conf" in said.out
    assert "to check it again later" not in said.out
    assert "installed file" not in said.err
