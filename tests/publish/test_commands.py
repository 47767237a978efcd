"""``publish``, ``unpublish`` and ``verify-published`` as a user meets them, without launches."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.cli import main
from autotune.publish.formats.scripts import Csh
from autotune.publish.recheck import Status
from autotune.store import AppInfo
from autotune.testing.format import evidence
from runner.mpi.library import Library
from tests.mpis import library_named
from tests.publish.conftest import MakeStudy, put_in_place

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.mpi
LINE = "--mca btl_sm_eager_limit 8192"
"""Of Open MPI's parameter files."""
NOT_COMPARED: Status = "not compared"


@pytest.fixture(autouse=True)
def _place(open_mpi: Library, home: Path, work: Path, store: Path) -> None:
    """The commands look for an MPI; every file goes into a private place."""


@pytest.fixture
def no_csh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No C shell is installed, so that its files are written without test runs."""
    monkeypatch.setattr(Csh, "interpreters", ("no-such-shell",))


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["publish"], "publish.no_classwide", "--from"),
        (["publish", "-f", "tuen"], "publish.format_unknown", " tune?"),
        (["publish", "-f", "tune"], "publish.no_classwide", "--from"),
        (["publish", "-f", "tune", "--from", "study:abcdef"], "study.unknown", "abcdef"),
        (["publish", "-f", "tune", "--from", "x"], "publish.source_syntax", "study:ID"),
        (["publish", "-f", "tune", "--cluster", "nowhere"], "config.missing", "nowhere"),
        (["unpublish"], "published.none", "--all"),
        (["unpublish", "missing.conf"], "published.missing", "missing.conf"),
        (["verify-published", "missing.conf"], "published.missing", "missing.conf"),
    ],
)
def test_mistakes_are_one_message(words: list[str], code: str, named: str, capfd: Capture) -> None:
    assert main(words) == 2
    err = capfd.readouterr().err
    assert f"[{code}]" in err
    assert named in err
    assert "Traceback" not in err


def test_a_dry_run_and_a_difference_write_nothing(
    make_study: MakeStudy, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    words = ["publish", "--from", make_study(version=open_mpi.version), "-f", "tune"]
    before = sorted(work.iterdir())
    assert main([*words, "--dry-run"]) == 0
    assert LINE in capfd.readouterr().out
    assert main([*words, "--diff"]) == 0
    assert f"+{LINE}" in capfd.readouterr().out
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
    assert "[published.edited]" in said
    assert "'btl_sm_eager_limit = 4096'" in said
    assert "'btl_sm_eager_limit = 8192'" in said
    path.write_text(block)
    assert main(["unpublish", str(path)]) == 0
    assert str(path) in capfd.readouterr().out
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
    assert "[published.edited]" in seen.err
    assert f"{work}/b.tune" in seen.err
    assert f"{work}/a.tune" not in seen.err
    assert "--mca mine 1" in " ".join(seen.err.split())
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
    assert f"rules-v3: {rows['rules-v3']}" in " ".join(said.split()), "why not, too"


def test_a_file_of_others_is_not_verified(work: Path, capfd: Capture) -> None:
    (work / "x.conf").write_text("a = 1\n")
    assert main(["verify-published", "x.conf"]) == 2
    assert "[published.foreign]" in capfd.readouterr().err


def test_with_nothing_published_all_is_well(home: Path, work: Path, capfd: Capture) -> None:
    assert main(["verify-published"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    assert main(["verify-published", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert main(["verify-published", "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["files"] == []


def test_each_file_is_checked_with_the_library_that_loads_it(
    home: Path, work: Path, store: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """Two series on PATH, whichever is first; ``--quiet`` has one line for what is wrong."""
    names = {"openmpi-4.1": "btl_vader_eager_limit", "openmpi-5": "btl_sm_eager_limit"}
    libraries = [library_named(series) for series in names]
    for library, name in zip(libraries, names.values(), strict=True):
        seen = evidence(mpi_family="openmpi", mpi_version=library.version)
        path = work / f"{library.version}.tune"
        put_in_place("tune", path, library, {"mca": {name: "8192"}}, seen)
    for order in (libraries, libraries[::-1]):
        bins = [library.bin for library in order]
        monkeypatch.setenv("PATH", os.pathsep.join([*bins, os.environ["PATH"]]))
        assert main(["verify-published", "--no-compare", "--json", "-"]) == 0
        files = json.loads(capfd.readouterr().out)["files"]
        assert [(file["in_force"], file["expired"]) for file in files] == [(True, None)] * 2
    assert main(["verify-published", "--no-compare", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    broken = work / f"{libraries[0].version}.tune"
    broken.write_text(broken.read_text().replace("8192", "4096"))
    assert main(["verify-published", "--no-compare", "--quiet"]) == 1
    (line,) = capfd.readouterr().out.splitlines()
    assert str(broken) in line


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
    assert "note [cluster.other]: " in said
    assert "local?" in " ".join(said.split())
    assert "note [publish.local_config]: configs/clusters/mine.toml " in said
    monkeypatch.chdir("/")
    assert main(["verify-published"]) == 1
    said = " ".join(capfd.readouterr().out.split())
    assert f"{work}/autotune-mine.csh" in said
    assert "autotune/clusters" in said
    assert "unpublish" not in said
    assert main(["verify-published", "--json", "-"]) == 1
    (file,) = json.loads(capfd.readouterr().out)["files"]
    assert (file["refused"], file["code"]) == (True, "trust.name_unknown")


def test_the_cluster_is_that_of_the_source(
    make_study: MakeStudy, no_csh: None, work: Path, open_mpi: Library, capfd: Capture
) -> None:
    (work / "configs/clusters").mkdir(parents=True)
    (work / "configs/clusters/mine.toml").write_text('name = "mine"\n')
    source = make_study(version=open_mpi.version, cluster="mine")
    words = ["publish", "--from", source, "-f", "csh", "--unproven", "--force", "--dry-run"]
    assert main(words) == 0, capfd.readouterr().err
    assert "autotune-mine.csh" in capfd.readouterr().out
    assert main([*words, "--cluster", "local"]) == 0
    assert "autotune-local.csh" in capfd.readouterr().out


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
    assert main(["verify-published", "--json", "-"]) == 1
    found = json.loads(capfd.readouterr().out)
    one = {Path(file["path"]).name: (file["in_force"], file["code"]) for file in found["files"]}
    assert one == {"one.csh": (False, "published.edited"), "two.csh": (None, None)}
    (other,) = found["comparisons"]
    assert (other["source"], other["program"], other["status"]) == (study, "second", NOT_COMPARED)


def test_a_parameter_file_that_nothing_reads_is_said_to_be_one(
    make_study: MakeStudy,
    work: Path,
    home: Path,
    open_mpi: Library,
    capfd: Capture,
    snapshot: SnapshotAssertion,
) -> None:
    (work / "etc").mkdir()
    source = make_study({"mca": {"mpi_yield_when_idle": "1"}}, version=open_mpi.version)
    assert main(["publish", "--from", source, "-f", "openmpi-user", "-o", "etc"]) == 0
    said = capfd.readouterr()
    assert f"{work}/etc/mca-params.conf; " in said.out
    assert "note [publish.not_read]: " in said.out
    assert f"{home}/.openmpi/mca-params.conf" in said.out
    assert "verify-published" not in said.out
    assert [line for line in said.err.splitlines() if line.startswith("openmpi-user:")] == snapshot
