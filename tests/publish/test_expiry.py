"""Published settings expire with the version of their library, and are renewed by measuring."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.cli import main
from autotune.config.cluster import load_cluster
from autotune.publish.content import Evidence
from autotune.publish.formats import find
from autotune.publish.header import Header, read_header
from autotune.publish.install import load_text, put
from autotune.publish.probe import Prober
from autotune.publish.published_files import remember_file
from autotune.publish.published_text import difference, edit
from autotune.publish.recheck import Recheck, Status, not_renewable, renewal
from autotune.publish.verify import (
    Expiry,
    FileState,
    expiry,
    look,
    proven_with,
    published_files,
    unchecked_evidence,
)
from autotune.report.cluster import published_section
from autotune.report.page import Page, render
from autotune.testing.format import NEW, OLD, evidence, plan_file, rendered_text
from runner.mpi.library import Library
from tests.publish.apps import define_flip
from tests.publish.test_again import GAIN
from tests.publish.test_trust import EAGER, forged

Capture = pytest.CaptureFixture[str]
CHECK = {"app": "flip", "input": None, "ranks": 1}


def header(path: Path, seen: Evidence, name: str = "tune") -> Header:
    return plan_file(find(name), path, seen).header


def proven(version: str, **more: object) -> Evidence:
    return evidence(mpi_family="openmpi", mpi_version=version, **more)


def test_a_file_says_what_was_checked_and_whether_nobody_verified(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    study = {**CHECK, "metric": None, "verify": None}
    old = header(path, proven("5.0.11", check=(study,)))
    assert [note.code for note in unchecked_evidence(old)] == ["result.unchecked"]
    assert FileState(path, True, "", old).to_json()["unchecked"][0]["code"] == "result.unchecked"
    verified = header(path, proven("5.0.11", check=({**study, "verify": "ok"},)))
    assert unchecked_evidence(verified) == []
    assert unchecked_evidence(header(path, proven("5.0.11", check=(CHECK,)))) == []  # Not known.
    said = header(path, proven("5.0.11", checked="verified by the application"))
    assert f"checks: {said.evidence.checked}" in said.lines()
    assert read_header("\n".join(said.lines())) is not None
    assert Header.from_data(said.data()) == said


@pytest.mark.parametrize(
    ("version", "expired"),
    [("5.0.11", False), ("5.0.10", True), ("5.0.1", True), ("5.1.0", True), ("4.1.8", True)],
)
def test_every_other_release_is_another_library(
    tmp_path: Path, version: str, expired: bool
) -> None:
    path = tmp_path / "f.tune"
    found = expiry(path, header(path, proven(version)), NEW)
    assert (found is not None) == expired
    if found is not None:
        versions = (found.proven_version, found.installed_version)
        assert (found.family, *versions) == ("openmpi", version, "5.0.11")
        assert found.words.index(version) < found.words.index("5.0.11")
        assert found.commands == {
            "prove again": f"autotune verify-published --renew --mpi {NEW.launcher} {path}",
            "remove": f"autotune unpublish {path}",
        }


def test_a_library_of_another_family_says_nothing_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    mpich = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpirun")
    assert expiry(path, header(path, proven("5.0.10")), mpich) is None


def test_evidence_without_a_version_counts_for_that_of_the_publication(tmp_path: Path) -> None:
    assert proven_with(header(tmp_path / "f", evidence())) == ("openmpi", "5.0.11")


def test_a_renewed_version_counts(tmp_path: Path) -> None:
    again = {"mpi_version": "5.0.11", "mpi_bin": "/x", "date": "2026-11-23", "words": []}
    one = header(tmp_path / "f", proven("5.0.10", renewed=again))
    assert proven_with(one) == ("openmpi", "5.0.11")


def test_another_series_is_expired_unless_its_library_is_still_there(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    put(path, rendered_text(find("tune"), path, proven("5.0.11")))
    gone = look(path, Prober(OLD, load_cluster("local")))
    assert gone.has_lost_proof
    assert gone.expiry == Expiry(path, "openmpi", "5.0.11", "4.1.8", OLD.launcher)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").write_text("")
    seen = proven("5.0.11", mpi_bin=str(tmp_path / "bin"))
    put(path, rendered_text(find("tune"), path, seen))
    there = look(path, Prober(OLD, load_cluster("local")))
    assert there.expiry is None
    assert f"--mpi {tmp_path}/bin" in there.why


@pytest.mark.parametrize("name", ["tune", "openmpi-user", "sh", "rules-v3"])
def test_a_renewed_file_is_what_autotune_would_write(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f"
    text = rendered_text(find(name), path, proven("5.0.10"))
    put(path, replace(text, main=f"# own\n{text.main}") if find(name).merges else text)
    check = Recheck("study:abc", "flip on 1 rank", "still there", "+25.0 % in 6 pairs")
    one = renewal(path, NEW, [check])
    written = one.text(one.content, NEW, one.header.probe)
    put(path, written)
    found = load_text(path)
    assert found is not None
    assert found.header is not None
    assert difference(path, found, found.header, NEW) is None
    assert edit(path, found, found.header) is None
    assert ("# own\n" in found.main) == find(name).merges
    (line,) = [line for line in found.whole.splitlines() if line.endswith(check.words)]
    assert f" {NEW.version}, " in line
    assert found.header.evidence.mpi_version == "5.0.10", "what was proven first stays"
    assert expiry(path, found.header, NEW) is None


def state(path: Path, seen: Evidence, in_force: bool | None = True) -> FileState:
    return FileState(path, in_force, "", header(path, seen))


@pytest.mark.parametrize(
    "statuses",
    [["still there"], ["gone"], ["cannot be told"], ["not compared"], []],
)
def test_only_a_gain_that_is_seen_again_renews(
    tmp_path: Path, statuses: list[Status], snapshot: SnapshotAssertion
) -> None:
    checks = [Recheck("study:abc", "flip", status, "") for status in statuses]
    seen = proven("5.0.10", check=(CHECK,))
    why = not_renewable(state(tmp_path / "f", seen), checks)
    assert why == snapshot
    assert bool(why) == (statuses != ["still there"])
    assert not_renewable(state(tmp_path / "f", seen, False), checks) not in ("", why)
    two = proven("5.0.10", check=(CHECK, CHECK))
    assert not_renewable(state(tmp_path / "f", two), checks), "each program counts"


@pytest.mark.parametrize(
    "renewed",
    [1, [], {"mpi_version": 5}, {"mpi_version": "5", "mpi_bin": "/x", "date": "", "words": [1]}],
)
def test_a_damaged_renewal_is_a_damaged_header(tmp_path: Path, renewed: Any) -> None:
    path = tmp_path / "f.tune"
    text = rendered_text(find("tune"), path).whole
    damaged = text.replace('"programs":[]', f'"programs":[],"renewed":{json.dumps(renewed)}')
    assert damaged != text
    with pytest.raises(Exception, match="damaged"):
        read_header(damaged)


def other(library: Library) -> str:
    """Another patch release of the library."""
    return ".".join([*library.version.split(".")[:2], "99"])


@pytest.fixture
def file(work: Path, home: Path, store: Path, open_mpi: Library) -> Path:
    """A published file that was proven with an earlier release of the installed library."""
    define_flip(work, open_mpi)
    seen = proven(other(open_mpi), check=(CHECK,), gain=GAIN, source="study:abc")
    path = forged(work / "f.tune", find("tune"), EAGER, open_mpi, seen=seen)
    remember_file(path)
    return path


@pytest.mark.mpi
def test_each_command_names_an_expired_file(file: Path, open_mpi: Library, capfd: Capture) -> None:
    words = Expiry(file, "openmpi", other(open_mpi), open_mpi.version).words
    assert main(["verify-published", "--no-compare", "--json", "out.json"]) == 1
    said = " ".join(capfd.readouterr().out.split())
    assert words in said
    assert f" verify-published --renew {file}" in said
    assert f" unpublish {file}" in said
    found = json.loads(Path("out.json").read_text())
    assert found["ok"] is False
    assert found["files"][0]["in_force"] is True, "the library loads it all the same"
    assert found["files"][0]["expired"]["proven_with"] == other(open_mpi)
    assert main(["doctor", "--quick"]) == 0
    assert words in " ".join(capfd.readouterr().out.split())
    assert main(["run", "--app", "flip", "-n", "1", "--no-guard"]) in (0, 1)
    capfd.readouterr()
    assert main(["status"]) == 0
    assert words in " ".join(capfd.readouterr().out.split())
    page = render(Page("t", "", (published_section(published_files()[0]),)))
    assert words in page
    assert "1 of 1" in page
    assert main(["verify-published", "--no-compare", "--renew"]) == 2


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(("mode", "code"), [("there", 0), ("gone", 1)])
def test_a_gain_that_is_measured_again_renews_the_file(
    file: Path, work: Path, quiet: None, capfd: Capture, mode: str, code: int
) -> None:
    (work / "mode").write_text(mode)
    before = file.read_bytes()
    words = ["verify-published", str(file), "--renew", "--pairs", "6", "--json", "out.json"]
    assert main(words) == code
    said = " ".join(capfd.readouterr().out.split())
    (one,) = json.loads((work / "out.json").read_text())["renewals"]
    assert one["renewed"] is (code == 0)
    assert one["words"] in said
    assert (file.read_bytes() == before) is (code == 1)
    assert main(["verify-published", "--no-compare"]) == code
    assert main(["unpublish", str(file)]) == 0
