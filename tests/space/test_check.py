"""Checking a space file against a library."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.space.check import check_file
from runner.mpi.library import Library
from tests.refusals import refused
from tests.space.libraries import NEW, OLD


def findings(tmp_path: Path, text: str, library: Library = NEW) -> list[str]:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    report = check_file(str(path), library)
    assert report.ok == (report.space is not None)
    return [str(finding) for finding in report.findings]


@pytest.mark.parametrize(
    ("library", "name", "told"),
    [
        (OLD, "btl_sm_eager_limit", "it is called btl_vader_eager_limit here"),
        (NEW, "mpi_preconnect_mpi", "it is called mpi_preconnect_all here"),
        (NEW, "mpi_paffinity_alone", "use the parameter bind_to"),
        (NEW, "rmaps_base_mapping_policy", "use the parameter map_by"),
        (NEW, "btl_openib_eager_limit", "InfiniBand is driven by UCX"),
        (NEW, "btl_vader_single_copy_mechanism", 'smsc = "^cma"'),
        (OLD, "smsc", "btl_vader_single_copy_mechanism"),
        (NEW, "btl_sm_num_fifos", "no such queues"),
        (NEW, "orte_base_help_aggregate", 'target = "prte"'),
        (NEW, "btl_sm_eager_limt", "did you mean btl_sm_eager_limit"),
        (OLD, "btl_sm_eager_limt", "did you mean btl_vader_eager_limit"),
        (NEW, "zzz", "no parameter here has a similar name"),
    ],
)
def test_unknown_names_are_refused_with_what_to_write(
    tmp_path: Path, library: Library, name: str, told: str
) -> None:
    found = findings(tmp_path, f"[parameters.{name}]\nlevels = [1]\n", library)
    assert len(found) == 1
    assert (
        f"error: parameters.{name}: Open MPI {library.version} has no parameter {name}: "
        in found[0]
    )
    assert told in found[0]


def test_the_older_name_of_a_parameter_is_only_remarked(tmp_path: Path) -> None:
    found = findings(tmp_path, "[parameters.btl_vader_eager_limit]\nlevels = [1024]\n")
    assert len(found) == 1
    assert found[0].startswith("note: parameters.btl_vader_eager_limit: ")
    assert found[0].endswith("is called btl_sm_eager_limit here; that name is used")


def test_what_is_optional_or_absent_is_only_remarked(tmp_path: Path) -> None:
    text = """
    [parameters.btl_openib_eager_limit]
    levels = [1024]
    optional = true
    [parameters.mpi_leave_pinned]
    absent = "needs RDMA"
    """
    found = findings(tmp_path, text)
    assert [line.split(":")[0] for line in found] == ["note", "note"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("btl_tcp_eager_limit]\nlevels = [-1]", "-1 is negative (type size_t)"),
        ("btl_tcp_eager_limit]\nlevels = ['abc']", "'abc' is not a number"),
        ("btl_tcp_eager_limit]\nlevels = [1.5]", "1.5 is not a whole number"),
        ("btl_tcp_eager_limit]\nlevels = [1]\ndefault = 'x'", "default: 'x' is not a number"),
        ("btl_tcp_eager_limit]\nlevels = 'enum'", "lists none"),
        ("mpi_yield_when_idle]\nlevels = [0, 2]", "2 is not a boolean"),
        ("coll_tuned_bcast_algorithm]\nlevels = [1, 44]", "44 is not among 0 ignore, 1 basic"),
        ("coll_tuned_bcast_algorithm]\nlevels = ['chian']", "'chian' is not among"),
        ("coll_tuned_bcast_algorithm]\nlevels = [1]\nexclude = ['two']", "exclude: 'two' is not"),
        ("mpi_yield_when_idle]\nlevels = [1]\nimplies = {smcs = 1}", "did you mean smsc"),
        ("mpi_yield_when_idle]\nlevels = [1]\nimplies = {btl_tcp_links = 'a'}", "'a' is not a"),
        ("a]\non.'openmpi<5' = {levels = [1]}\ntarget = 'env'", "no levels for this library"),
        ("a]\nlvels = [1]", "unknown key"),
        ("map_by]\nlevels = ['slot']\nunset = false\nwhen = 'ranks > 1'", "cannot have a cond"),
    ],
)  # fmt: skip
def test_illegal_values_are_refused(tmp_path: Path, text: str, told: str) -> None:
    found = findings(tmp_path, f"[parameters.{text}\n")
    assert len(found) == 1
    assert told in found[0]


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
    assert len(found) == 2
    assert "parameters.btl_tcp_eager_limit.when: 'chian' is not a value of" in found[0]
    assert (
        "constraints.0.rule: 'big' is not a value of btl_tcp_eager_limit; expected numbers"
        in found[1]
    )


def test_every_mistake_of_the_file_is_in_one_report(tmp_path: Path) -> None:
    text = "descripton = 'x'\n[parameters.a]\nlevels = '1:'\n[[constraints]]\nrul = 'a'\n"
    found = findings(tmp_path, text)
    assert len(found) == 4
    assert all("mine.toml" in line for line in found)


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


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Those of the file's form, of its names, and of the library: one by one costs a run each."""
    told = [
        "parameters.btl_sm_eager_limit.levels: levels [1, 'x'] mix words and numbers",
        "parameters.btl_sm_eager_limit.valuez: unknown key",
        "constraints.2.rule: expression 'ranks ='",
        "name: unknown key here ([parameters.NAME] has one); keys here are app_facts, ",
        "constraints.1.rule: btl_sm_fbox_max is neither a parameter of this file nor a fact",
        "has no parameter nothing_known",
        "parameters.coll_tuned_bcast_algorithm.levels: 99 is not among",
    ]
    found = findings(tmp_path, MANY)
    assert len(found) == len(told), found
    for words, line in zip(told, found, strict=True):
        assert words in line


def test_a_file_that_is_no_toml_has_one_mistake(tmp_path: Path) -> None:
    (one,) = findings(tmp_path, "levels = [")
    assert "not valid TOML" in one
