"""Checking a space file against a library."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.errors import UsageError
from autotune.space.check import SpaceFinding, check_file
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW, OLD


def findings(tmp_path: Path, text: str, library: Library = NEW) -> list[SpaceFinding]:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    report = check_file(str(path), library)
    assert report.ok == (report.space is not None)
    return list(report.findings)


def places(found: list[SpaceFinding]) -> list[tuple[str, str, str]]:
    return [(finding.kind, finding.code, finding.where) for finding in found]


@pytest.mark.parametrize(
    ("library", "name"),
    [
        (OLD, "btl_sm_eager_limit"),
        (NEW, "mpi_preconnect_mpi"),
        (NEW, "mpi_paffinity_alone"),
        (NEW, "rmaps_base_mapping_policy"),
        (NEW, "btl_openib_eager_limit"),
        (NEW, "btl_vader_single_copy_mechanism"),
        (OLD, "smsc"),
        (NEW, "btl_sm_num_fifos"),
        (NEW, "orte_base_help_aggregate"),
        (NEW, "btl_sm_eager_limt"),
        (OLD, "btl_sm_eager_limt"),
        (NEW, "zzz"),
    ],
)
def test_unknown_names_are_refused_with_what_to_write(
    tmp_path: Path, library: Library, name: str, snapshot: SnapshotAssertion
) -> None:
    found = findings(tmp_path, f"[parameters.{name}]\nlevels = [1]\n", library)
    assert places(found) == [("error", "parameter.unknown", f"parameters.{name}")]
    assert found[0].message == snapshot


def test_the_older_name_of_a_parameter_is_only_remarked(tmp_path: Path) -> None:
    found = findings(tmp_path, "[parameters.btl_vader_eager_limit]\nlevels = [1024]\n")
    assert places(found) == [("note", "parameter.synonym", "parameters.btl_vader_eager_limit")]
    assert "btl_sm_eager_limit" in found[0].message


def test_what_is_optional_or_absent_is_only_remarked(tmp_path: Path) -> None:
    text = """
    [parameters.btl_openib_eager_limit]
    levels = [1024]
    optional = true
    [parameters.mpi_leave_pinned]
    absent = "needs RDMA"
    """
    found = findings(tmp_path, text)
    assert [finding.kind for finding in found] == ["note", "note"]


@case_table(
    ("text", "code", "key", "told"),
    [
        ("btl_tcp_eager_limit]\nlevels = [-1]", "parameter.value", "levels", "-1"),
        ("btl_tcp_eager_limit]\nlevels = ['abc']", "parameter.value", "levels", "'abc'"),
        ("btl_tcp_eager_limit]\nlevels = [1.5]", "parameter.value", "levels", "1.5"),
        ("btl_tcp_eager_limit]\nlevels = [1]\ndefault = 'x'", "parameter.value", "default", "'x'"),
        ("btl_tcp_eager_limit]\nlevels = 'enum'", "levels.no_enum", "levels", '"enum"'),
        ("mpi_yield_when_idle]\nlevels = [0, 2]", "parameter.value", "levels", "2"),
        ("coll_tuned_bcast_algorithm]\nlevels = [1, 44]", "parameter.value", "levels", "44"),
        ("coll_tuned_bcast_algorithm]\nlevels = ['chian']", "parameter.value", "levels", "'chian'"),
        ("coll_tuned_bcast_algorithm]\nlevels = [1]\nexclude = ['two']",
         "parameter.value", "exclude", "'two'"),
        ("mpi_yield_when_idle]\nlevels = [1]\nimplies = {smcs = 1}",
         "parameter.unknown", "implies", "smsc"),
        ("mpi_yield_when_idle]\nlevels = [1]\nimplies = {btl_tcp_links = 'a'}",
         "parameter.value", "implies.btl_tcp_links", "'a'"),
        ("a]\non.'openmpi<5' = {levels = [1]}\ntarget = 'env'", "levels.none", "levels", ""),
        ("a]\nlvels = [1]", "space.invalid", "", "parameters.a.lvels"),
        ("map_by]\nlevels = ['slot']\nunset = false\nwhen = 'ranks > 1'",
         "space.invalid", "", '"when"'),
    ],
)  # fmt: skip
def test_illegal_values_are_refused(
    tmp_path: Path, text: str, code: str, key: str, told: str
) -> None:
    found = findings(tmp_path, f"[parameters.{text}\n")
    where = f"parameters.{text.partition(']')[0]}.{key}" if key else ""
    assert places(found) == [("error", code, where)]
    assert told in found[0].message


def test_legal_values_pass(tmp_path: Path) -> None:
    text = """
    [parameters.coll_tuned_bcast_algorithm]
    levels = ["chain", "binomial"]
    [parameters.btl_sm_flags]
    levels = [1, 9]
    [parameters.mpi_ft_detector_period]
    levels = [0.5, 2]
    [parameters.smsc]
    levels = ["^cma"]
    [parameters.map_by]
    levels = ["node"]
    """
    assert findings(tmp_path, text) == []


def test_words_that_no_value_has_are_refused(tmp_path: Path) -> None:
    text = """
    [parameters.coll_tuned_bcast_algorithm]
    levels = "enum"
    [parameters.btl_tcp_eager_limit]
    levels = [1024]
    when = "coll_tuned_bcast_algorithm in ('chain', 'chian')"
    [[constraints]]
    rule = "'big' != btl_tcp_eager_limit"
    [[constraints]]
    rule = "btl_tcp_eager_limit == 'old'"
    on = "openmpi<5"
    """
    found = findings(tmp_path, text)
    assert places(found) == [
        ("error", "expression.word", "parameters.btl_tcp_eager_limit.when"),
        ("error", "expression.word", "constraints.0.rule"),
    ]
    assert "'chian'" in found[0].message
    assert "'big'" in found[1].message


def test_every_mistake_of_the_file_is_in_one_report(tmp_path: Path) -> None:
    text = "descripton = 'x'\n[parameters.a]\nlevels = '1:'\n[[constraints]]\nrul = 'a'\n"
    found = findings(tmp_path, text)
    assert len(found) == 4
    assert all("mine.toml" in finding.message for finding in found)


def test_a_missing_file_or_a_mute_library_is_told(tmp_path: Path) -> None:
    with refused(UsageError, "config.unreadable"):
        check_file(str(tmp_path / "none.toml"), NEW)
    mute = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpiexec")
    with refused(UsageError, "mpi.no_parameter_list"):
        check_file("null", mute)


MANY = """
name = "mine"
[parameters.btl_sm_eager_limit]
levels = [1, "x"]
valuez = 3
[parameters.nothing_known]
levels = [1, 2]
[parameters.coll_tuned_bcast_algorithm]
levels = [99]
[[constraints]]
rule = "btl_sm_eager_limit > 1"
[[constraints]]
rule = "btl_sm_fbox_max > 1"
[[constraints]]
rule = "ranks ="
"""


def test_all_mistakes_are_told_at_once(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Those of the file's form, of its names, and of the library: one by one costs a run each."""
    found = findings(tmp_path, MANY)
    assert [str(finding).removeprefix(f"{tmp_path}/") for finding in found] == snapshot


def test_a_file_that_is_no_toml_has_one_mistake(tmp_path: Path) -> None:
    (one,) = findings(tmp_path, "levels = [")
    assert places([one]) == [("error", "space.invalid", "")]
