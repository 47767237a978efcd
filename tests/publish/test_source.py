"""What speaks against publishing a result here, and what cannot be published at all."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from autotune.anova.classwide_result import RESULTS, ClasswideResult, ProgramEvidence
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.measurement.study_executables import store_executables
from autotune.publish.content import Content
from autotune.publish.formats import find
from autotune.publish.plan import plan_files
from autotune.publish.source import PublicationSource, read_source
from autotune.publish.source_place import library_of_source
from autotune.space import Setting
from autotune.store import MachineInfo, MpiInfo, Store
from autotune.store.keys import LAUNCHER
from autotune.targets.executables import ExecutableFile
from autotune.testing.format import evidence
from runner.machine import describe_machine
from runner.mpi.library import Library
from runner.mpi.srun import is_srun
from tests.publish.conftest import MakeStudy
from tests.refusals import refused
from tests.space.libraries import NEW, OLD

EMPTY: dict[str, Any] = {"status": "keep_default", "recommended": {"setting": {}}, "gain": None}


def proposal(source: str | None, store: Path, insist: bool = False) -> PublicationSource:
    with Store.open(store) as opened:
        return read_source(source, load_cluster("local"), NEW, opened, insist)


def test_a_proven_study_of_this_machine_has_no_doubts(store: Path, make_study: MakeStudy) -> None:
    found = proposal(make_study(), store)
    assert found.doubts == ()
    assert found.content.groups == {"mca": {"btl_sm_eager_limit": "8192"}}
    assert found.evidence.gain == 0.08
    assert found.evidence.runs == 54


def test_a_check_later_removes_inherited_settings_only_if_the_study_did(
    store: Path, make_study: MakeStudy
) -> None:
    for clean in (True, False):
        (check,) = proposal(make_study(conditions={"clean_env": clean}), store).evidence.check
        assert check.get("clean_env", False) is clean


def test_another_mpi_machine_or_cluster_is_a_doubt(store: Path, make_study: MakeStudy) -> None:
    there = MachineInfo(128, "Another CPU", 2**40, "6.1")
    cases = {
        "measured with openmpi 5.1.0": make_study(version="5.1.0"),
        "another machine": make_study(machine=there),
        "on cluster big": make_study(cluster="big"),
        "definition of cluster local": make_study(cluster_hash="ab" * 32),
    }
    for words, source in cases.items():
        (doubt,) = proposal(source, store).doubts
        assert words in doubt.words
        with pytest.raises(UsageError, match="--force"):
            plan_files(proposal(source, store), [find("tune")], load_cluster("local"), NEW)


@pytest.mark.mpi
def test_the_library_that_measured_loads_it_by_the_launcher_of_the_study(
    store: Path, make_study: MakeStudy, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no PATH leads to it, and where the user names it."""
    mpi = MpiInfo(library.family, library.version, path=library.bin)
    sources = make_study(mpi=mpi, conditions={LAUNCHER: "srun"}), make_study(mpi=mpi)
    monkeypatch.setenv("PATH", "/bin")
    with Store.open(store) as opened:
        for named in (None, library.bin):
            srun, own = (library_of_source(each, "local", opened, named) for each in sources)
            assert (srun.bin, own.bin) == (library.bin, library.bin)
            assert (is_srun(srun.launcher), is_srun(own.launcher)) == (True, False)


@pytest.mark.parametrize("change", ["rebuilt", "removed", "the same"])
def test_a_program_that_has_changed_since_is_a_doubt(
    store: Path, make_study: MakeStudy, tmp_path: Path, change: str
) -> None:
    program = tmp_path / "solver"
    program.write_bytes(b"one")
    source = make_study()
    with Store.open(store) as opened:
        study = opened.find_study(source.partition(":")[2])
        ran = ExecutableFile(str(program), hashlib.sha256(b"one").hexdigest())
        assert store_executables(opened, study.id, [ran]) == []
    program.unlink()
    if change != "removed":
        program.write_bytes(b"two" if change == "rebuilt" else b"one")
    doubts = proposal(source, store).doubts
    assert len(doubts) == (change != "the same")
    assert {doubt.code for doubt in doubts} <= {"study.program_changed"}
    assert all(doubt.data["files"][0]["path"] == str(program) for doubt in doubts)


def test_a_patch_release_is_a_doubt(store: Path, make_study: MakeStudy) -> None:
    (doubt,) = proposal(make_study(version="5.0.3"), store).doubts
    assert doubt.data == {"measured": "openmpi 5.0.3", "here": "openmpi 5.0.11"}


def test_nothing_proven_is_published_on_demand_alone(store: Path, make_study: MakeStudy) -> None:
    best = {"setting": {"btl_sm_eager_limit": 8192}, "median_s": 1.0, "n": 1}
    source = make_study(result=EMPTY | {"best": best})
    with refused(UsageError, "publish.nothing_proven") as refusal:
        proposal(source, store)
    assert "\n--force" in str(refusal.value)
    found = proposal(source, store, insist=True)
    assert not found.evidence.proven
    assert found.evidence.gain is None
    assert any(doubt.code == "setting.unproven" for doubt in found.doubts)
    with refused(UsageError, "publish.nothing_proven") as refusal:
        proposal(make_study(result=EMPTY, seed=3), store, insist=True)
    assert "\n--force" not in str(refusal.value)


def test_what_was_measured_without_the_guard_is_a_doubt(store: Path, make_study: MakeStudy) -> None:
    unguarded = make_study(conditions={"guard": False})
    found = proposal(unguarded, store)
    assert (found.evidence.proven, found.evidence.guarded, found.evidence.gain) == (
        (False, False, None)
    )
    assert [doubt.code for doubt in found.doubts] == ["guard.off"]
    with pytest.raises(UsageError, match="--force"):
        plan_files(found, [find("tune")], load_cluster("local"), NEW)
    (one,) = plan_files(found, [find("tune")], load_cluster("local"), NEW, force=True)
    text = one.text(one.content, NEW, "").main
    assert "MEASURED WITHOUT THE GUARD" in text
    assert "NOT PROVEN TO BE FASTER" in text


def test_a_class_measured_without_the_guard_is_a_doubt(store: Path) -> None:
    result = classwide(status="unguarded")
    RESULTS.save(result)
    found = proposal(f"classwide:{result.id}", store)
    assert [doubt.code for doubt in found.doubts] == ["guard.off"]
    assert (found.evidence.gain, found.evidence.check[0]["gain"]) == (None, None)
    with refused(UsageError, "publish.no_classwide"):
        proposal(None, store)


def test_program_options_cannot_be_published(store: Path, make_study: MakeStudy) -> None:
    source = make_study({"mca": {"btl_sm_eager_limit": "1"}, "arg": {"tile": "4"}})
    with refused(UsageError, "publish.other_library"):
        proposal(source, store)


@pytest.mark.parametrize("wrong", ["", "study:", "nonsense:1", "abc"])
def test_a_source_that_is_none_is_refused(store: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match="study:ID"):
        proposal(wrong, store)


def test_formats_together_must_say_all_of_it(store: Path, make_study: MakeStudy) -> None:
    source = make_study({"mca": {"btl_sm_eager_limit": "1"}, "placement": {"bind_to": "none"}})
    found, cluster = proposal(source, store), load_cluster("local")
    with refused(UsageError, "publish.not_expressible"):
        plan_files(found, [find("openmpi-user")], cluster, NEW)
    both = plan_files(found, [find("openmpi-user"), find("prte-user")], cluster, NEW)
    assert [one.content.names for one in both] == [
        {("mca", "btl_sm_eager_limit")},
        {("placement", "bind_to")},
    ]
    assert len(plan_files(found, [find("sh")], cluster, NEW)) == 1


def test_several_formats_go_into_a_folder_by_their_usual_names(
    store: Path, make_study: MakeStudy, tmp_path: Path
) -> None:
    launched = {"mca": {"btl_sm_eager_limit": "8192"}, "placement": {"bind_to": "none"}}
    found, cluster = proposal(make_study(launched), store), load_cluster("local")
    two = [find("openmpi-user"), find("prte-user")]
    with refused(UsageError, "publish.one_file"):
        plan_files(found, two, cluster, NEW, tmp_path / "x.conf")
    with refused(UsageError, "publish.same_file"):
        plan_files(found, two, cluster, NEW, tmp_path)
    made = plan_files(found, [find("sh"), find("tcl")], cluster, NEW, tmp_path)
    assert [one.path.name for one in made] == ["autotune-local.sh", "autotune-local.tcl"]
    assert {one.path.parent for one in made} == {tmp_path}


def test_a_rules_file_is_named_by_what_loads_it(store: Path, make_study: MakeStudy) -> None:
    source = make_study({"mca": {"coll_tuned_bcast_algorithm": "6", "btl_tcp_links": "1"}})
    found, cluster = proposal(source, store), load_cluster("local")
    tune, rules = find("tune"), find("rules-v1")
    first, second = plan_files(found, [tune, rules], cluster, NEW)
    assert (first.fmt, second.fmt) == (rules, tune)
    assert second.content.groups["mca"] == {
        "btl_tcp_links": "1",
        "coll_tuned_use_dynamic_rules": "1",
        "coll_tuned_dynamic_rules_filename": str(first.path),
    }


def test_old_generations_say_mapping_in_their_one_file(store: Path, make_study: MakeStudy) -> None:
    source = make_study({"placement": {"bind_to": "none"}}, version="4.1.8")
    with Store.open(store) as opened:
        found = read_source(source, load_cluster("local"), OLD, opened)
    (one,) = plan_files(found, [find("openmpi-user")], load_cluster("local"), OLD)
    assert one.fmt.render(one.content, OLD) == "hwloc_base_binding_policy = none\n"
    with refused(UsageError, "publish.unprovable"):
        plan_files(found, [find("prte-user")], load_cluster("local"), OLD)


def classwide(**changes: object) -> ClasswideResult:
    row = ProgramEvidence(
        "jacobi3d", "tiny", 2, "local", False, 0.1, 0.05, 0.15, 12, "passed", "faster", "abc"
    )
    given: dict[str, object] = {
        "status": "recommended",
        "setting": Setting({"btl_sm_eager_limit": 8192}),
        "cluster": "local",
        "machine": describe_machine().fingerprint,
        "mpi": {"name": "openmpi", "version": "5.0.11"},
        "space": "openmpi",
        "date": "2026-01-01",
        "method": "direct",
        "source": "store",
        "gain": 0.1,
        "lo": 0.05,
        "hi": 0.15,
        "evidence": (row,),
        "margin": 0.02,
    }
    return ClasswideResult(**given | changes)  # type: ignore[arg-type]


def test_the_defaults_of_all_come_from_a_class_alone(store: Path, make_study: MakeStudy) -> None:
    cluster, system = load_cluster("local"), [find("openmpi-system")]
    with refused(UsageError, "publish.not_classwide"):
        plan_files(proposal(make_study(), store), system, cluster, NEW)
    with refused(UsageError, "publish.no_classwide"):
        proposal(None, store)
    result = classwide()
    RESULTS.save(result)
    found = proposal(None, store)
    assert found.doubts == ()
    assert found.evidence.source == f"classwide:{result.id}"
    assert found.evidence.runs == 24
    assert len(plan_files(found, system, cluster, NEW)) == 1
    assert proposal(f"classwide:{result.id[:6]}", store) == found


def test_a_system_file_names_a_table_beside_it(store: Path, tmp_path: Path) -> None:
    """All users must find it; the folder of the caller may be anywhere."""
    values = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_bcast_algorithm": "6"}
    content = Content({"mca": values | {"btl_sm_eager_limit": "8192"}})
    source = PublicationSource(content, evidence(), (), True)
    formats, cluster = [find("rules-v1"), find("openmpi-system")], load_cluster("local")
    table, system = plan_files(source, formats, cluster, NEW)
    assert table.path.parent == system.path.parent == Path(NEW.bin).parent / "etc"
    assert system.content.groups["mca"]["coll_tuned_dynamic_rules_filename"] == str(table.path)
    table, system = plan_files(source, formats, cluster, NEW, tmp_path)
    assert table.path.parent == system.path.parent == tmp_path


def test_a_class_of_which_no_margin_was_shown_is_refused(store: Path) -> None:
    result = classwide(margin=None)
    RESULTS.save(result)
    with refused(UsageError, "artifact.damaged"):
        proposal(f"classwide:{result.id}", store)
    with refused(UsageError, "publish.no_classwide") as refusal:
        proposal(None, store)
    assert f"{result.id}.json" in str(refusal.value)


def test_a_class_that_cannot_be_read_is_a_doubt_about_the_latest(store: Path) -> None:
    path = RESULTS.save(classwide())
    (path.parent / "ffff.json").write_text("{")
    doubts = proposal(None, store).doubts
    assert [doubt.code for doubt in doubts] == ["artifact.left_out"]
    assert not proposal(f"classwide:{classwide().id}", store).doubts


def test_an_unproven_class_or_another_machine_is_a_doubt(store: Path) -> None:
    result = classwide(status="unproven", machine="0" * 16)
    RESULTS.save(result)
    doubts = proposal(f"classwide:{result.id}", store).doubts
    assert len(doubts) == 2


UNSAFE = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": "4"}


def test_what_is_wrong_for_some_operations_needs_the_users_word(
    store: Path, make_study: MakeStudy
) -> None:
    source = make_study({"mca": UNSAFE})
    with Store.open(store) as opened:
        with pytest.raises(UsageError) as refused:
            read_source(source, load_cluster("local"), NEW, opened, insist=True)
        assert refused.value.code == "published.unsafe"
        found = read_source(source, load_cluster("local"), NEW, opened, commutative_only=True)
    assert found.evidence.commutative_only
    (one,) = plan_files(found, [find("tune")], load_cluster("local"), NEW)
    text = one.text(one.content, NEW, "")
    header = text.header
    assert header is not None
    assert header.evidence.commutative_only
    assert "commutative-only" in text.main
    safe = make_study({"mca": UNSAFE | {"coll_tuned_allreduce_algorithm": "3"}}, seed=2)
    with Store.open(store) as opened:
        found = read_source(safe, load_cluster("local"), NEW, opened, commutative_only=True)
    assert not found.evidence.commutative_only
