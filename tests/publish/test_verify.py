"""Published files looked at again, as far as no launch is needed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.config.cluster import load_cluster
from autotune.publish.content import Content
from autotune.publish.formats import find
from autotune.publish.header import read_header
from autotune.publish.install import load_text, put
from autotune.publish.probe import Prober
from autotune.publish.recheck import Recheck, Status
from autotune.publish.verify import FileState, look, publications
from autotune.terminal.verification import print_checks
from autotune.testing.format import edited, evidence, plan_file, rendered_text
from tests.case_table import case_table
from tests.publish.conftest import put_in_place
from tests.publish.test_install import publish
from tests.space.libraries import NEW, OLD


@pytest.fixture
def prober() -> Prober:
    """Not entered: what is tested here ends before anything is launched."""
    return Prober(NEW, load_cluster("local"))


def state(path: Path, content: Content, source: str) -> FileState:
    fmt = find("rules-v1" if content.rules else "tune")
    header = plan_file(fmt, path, evidence(source=source)).header
    return FileState(path, True, "", type(header)(**{**vars(header), "content": content}))


def test_files_of_one_publication_are_compared_together(tmp_path: Path) -> None:
    rules = tmp_path / "r.rules"
    states = [
        state(rules, Content(rules=(Rule("bcast", 1, 0, "6"),)), "study:a"),
        state(tmp_path / "b", Content({"placement": {"bind_to": "none"}}), "study:a"),
        state(tmp_path / "c", Content({"mca": {"btl_x": "1"}}), "study:b"),
        FileState(tmp_path / "d", False, "gone"),
    ]
    first, second = publications(states)
    assert first.content.groups == {
        "mca": {
            "coll_tuned_use_dynamic_rules": "1",
            "coll_tuned_dynamic_rules_filename": str(rules),
        },
        "placement": {"bind_to": "none"},
    }
    assert second.content.groups == {"mca": {"btl_x": "1"}}
    assert (first.evidence.source, second.evidence.source) == ("study:a", "study:b")


def test_rules_in_variables_are_compared_as_variables(tmp_path: Path) -> None:
    header = state(tmp_path / "t", Content({"mca": {"I_MPI_FABRICS": "shm"}}), "study:a").header
    assert header is not None
    content = Content({}, (Rule("bcast", 2, 0, "3"),))
    told = {"content": content, "format": "impi-env", "mpi": "impi 2021.18.x (seen with 2021.18.1)"}
    one = FileState(tmp_path / "s", True, "", type(header)(**{**vars(header), **told}))
    (found,) = publications([one])
    assert found.content.groups == {"mca": {"I_MPI_ADJUST_BCAST": "3:0-2147483647"}}


@case_table(
    ("status", "lost", "still"),
    [
        ("still there", False, True),
        ("gone", True, False),
        ("cannot be told", False, None),
        ("not compared", False, None),
    ],
)
def test_only_what_is_shown_counts_as_lost(status: Status, lost: bool, still: bool | None) -> None:
    check = Recheck("study:a", "p", status, "")
    assert check.failed == lost
    assert check.to_json()["still_better"] is still
    assert check.to_json()["status"] == status


def test_a_file_that_is_gone_or_overwritten_is_not_in_force(tmp_path: Path, prober: Prober) -> None:
    path = tmp_path / "f.tune"
    assert (look(path, prober).in_force, look(path, prober).code) == (False, "published.missing")
    path.write_text("--mca other 1\n")
    assert (look(path, prober).in_force, look(path, prober).code) == (False, "published.gone")


@pytest.mark.parametrize("version", ["5.0.11", "5.0.11rc1", "5.0.11-rc_1", "5.0.11+git~2"])
def test_a_version_of_any_form_is_no_edit(tmp_path: Path, version: str) -> None:
    path = tmp_path / "f.sh"
    put_in_place("sh", path, dataclasses.replace(NEW, version=version))
    text = load_text(path)
    assert text is not None
    assert not edited(path, text)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        # A line that autotune would not write, and a file that it would, from other data.
        ("limit 8192", "limit 4096", "published.untrusted"),
        ("8192", "4096", "published.edited"),
        ('"machine":""', '"machine":"x"', "published.edited"),
    ],
)
def test_an_edited_file_is_not_loaded(
    tmp_path: Path, prober: Prober, old: str, new: str, code: str
) -> None:
    path = tmp_path / "f.tune"
    put_in_place("tune", path, NEW)
    text = path.read_text()
    assert text.count(old) > 0
    path.write_text(text.replace(old, new))
    seen = look(path, prober)
    assert (seen.in_force, seen.refused, seen.code) == (False, True, code)
    assert ("line " in seen.why) == (code == "published.untrusted")


def test_another_series_of_the_mpi_is_told(tmp_path: Path) -> None:
    path = tmp_path / "f.tune"
    publish(path, "tune")
    seen = look(path, Prober(OLD, load_cluster("local")))
    assert (seen.in_force, seen.code) == (False, "published.other_library")
    assert "openmpi 5.0.x" in seen.why
    assert "openmpi 4.1.x" in seen.why


def test_a_parameter_file_elsewhere_is_in_force_nowhere(tmp_path: Path, prober: Prober) -> None:
    path = tmp_path / "elsewhere.conf"
    publish(path, "openmpi-user")
    space = tmp_path / "more.toml"
    more = "[parameters.OMP_PROC_BIND]\nlevels = ['close']\ntarget = 'env'\n"
    space.write_text("[parameters.MPIR_CVAR_CH4_SHM_POSIX_EAGER]\nlevels = ['iqueue']\n" + more)
    seen = look(path, prober, [str(space)])
    assert (seen.in_force, seen.code) == (False, "publish.not_obeyed")
    assert str(path) in seen.why


def test_an_unproven_file_stays_unknown(tmp_path: Path, prober: Prober) -> None:
    path = tmp_path / "f.json"
    text = rendered_text(find("rules-v3"), path)
    put(path, text)
    header = read_header(text.whole)
    assert header is not None
    assert not header.proven
    assert look(path, prober).in_force is None


@pytest.mark.parametrize(
    ("pairs", "more", "other"), [(4, "--budget", "--pairs"), (60, "--pairs", "--budget")]
)
def test_what_would_decide_it_is_said(
    pairs: int, more: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """More pairs than were allowed, or time for those that were."""
    check = Recheck("study:abc", "flip on 1 rank", "cannot be told", "open", {"pairs": pairs})
    print_checks([check], most=60)
    said = " ".join(capsys.readouterr().out.split())
    assert f" {pairs} " in said
    assert f"({check.words})" in said
    assert more in said
    assert other not in said


@pytest.mark.parametrize(
    "content",
    [
        Content({"mca": {"coll_tuned_reduce_algorithm": "5"}}),
        Content(rules=(Rule("allreduce", 4, 0, "3"), Rule("allreduce", 4, 1024, "4"))),
    ],
)
def test_an_older_file_with_a_wrong_algorithm_is_unsafe(tmp_path: Path, content: Content) -> None:
    found = state(tmp_path / "f", content, "study:a")
    assert found.has_lost_proof
    assert found.unsafe is not None
    assert found.unsafe.code == "published.unsafe"
    written = found.to_json()["unsafe"]
    assert written["code"] == "published.unsafe"
    assert len(written["data"]["values"]) == 1
    assert found.header is not None
    stated = dataclasses.replace(found.header.evidence, commutative_only=True)
    said = dataclasses.replace(found, header=dataclasses.replace(found.header, evidence=stated))
    assert (said.unsafe, said.has_lost_proof) == (None, False)


def test_rules_that_are_right_in_any_case_are_not_unsafe(tmp_path: Path) -> None:
    content = Content(rules=(Rule("allreduce", 4, 0, "3"), Rule("bcast", 4, 0, "4")))
    found = state(tmp_path / "f", content, "study:a")
    assert (found.unsafe, found.has_lost_proof) == (None, False)
    assert found.to_json()["unsafe"] is None
