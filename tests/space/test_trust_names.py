"""Which parameters are never taken from outside: compared with what the libraries say of theirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space
from autotune.space.extra_parameters import with_extra_parameters
from autotune.space.outside_names import check_values, known_names, runs_programs
from runner.mpi.intel_info import parse
from tests.case_table import case_table
from tests.space.libraries import NEW, OLD

LISTED = Path(__file__).with_name("data") / "text_parameters.tsv"
"""The parameters with text values that ``ompi_info``, ``pmix_info`` and MPICH list."""
INTEL = Path(__file__).parents[1] / "runner" / "data" / "impi_info_2021.18.1_expert.txt"
NAMES_SOMETHING = re.compile(
    r"file ?name|\b(topology|mapping|trace|json|tuning) files?\b|pathname|\bpaths?\b"
    r"|director(y|ies)"
    r"|\bexecutables?\b|\bscripts?\b|\bagent|\bshell\b|\bURI\b|command|custom arguments|xml"
    r"|location of|plugin|name of the \w*file|snapshot reference|tools to be loaded",
    re.IGNORECASE,
)
"""Words of a help text that say: the value is a program, a library, a file, or a partner."""
OTHERWISE = ("I_MPI_FABRICS",)
"""Its help tells of the paths of messages."""
BY_KIND = {
    "a place, by the end of a word": (
        *(
            "OPAL_PKGLIBDIR",
            "OPAL_LIBDIR",
            "HWLOC_XMLFILE",
            "orte_rankfile",
            "ZDOTDIR",
            "R_PROFILE",
        ),
        *("DARSHAN_LOGPATH", "OMPI_MCA_orte_rankfile", "FONTCONFIG_FILE", "R_LIBS", "GEM_HOME"),
        *("OPAL_SYSCONFDIR", "PRTE_MCA_prte_rankfile", "SCOREP_EXPERIMENT_DIRECTORY"),
    ),
    "words for what is started": (
        *("plm_slurm_args", "PETSC_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "ASAN_OPTIONS"),
        *("VALGRIND_OPTS", "CFLAGS", "MAKEFLAGS", "SLEPC_OPTIONS", "PRTE_MCA_plm_slurm_args"),
    ),
    "who is spoken to": (
        *("http_proxy", "HTTPS_PROXY", "all_proxy", "ptl_tcp_remote_connections", "orte_server"),
        *("ess_singleton_server", "orte_report_events", "psec", "PMIX_MCA_psec"),
    ),
    "containers": (
        *("APPTAINER_BIND", "SINGULARITY_BIND", "APPTAINER_BINDPATH", "SINGULARITYENV_LD_PRELOAD"),
        *("APPTAINERENV_PREPEND_PATH", "APPTAINER_OVERLAY", "ENROOT_MOUNT_HOME", "PODMAN_USERNS"),
    ),
    "interpreters and loaders": (
        *(
            "R_PROFILE_USER",
            "R_ENVIRON",
            "JULIA_DEPOT_PATH",
            "JULIA_LOAD_PATH",
            "PHPRC",
            "ROMIO_HINTS",
        ),
        *("HWLOC_COMPONENTS", "HWLOC_FSROOT", "CC", "MPICH_CC", "NODE_OPTIONS", "ENV"),
    ),
}
TUNED = (
    *(
        "btl_sm_flags",
        "btl_vader_flags",
        "coll_ftagree_era_topology",
        "OMP_PROC_BIND",
        "OMP_PLACES",
    ),
    *(
        "MPIR_CVAR_ENABLE_INTRANODE_TOPOLOGY_AWARE_TREES",
        "UCX_RC_MLX5_TX_QUEUE_LEN",
        "FI_LOG_LEVEL",
    ),
    *("UCX_LOG_LEVEL", "I_MPI_PIN_DOMAIN", "I_MPI_FABRICS", "KMP_AFFINITY", "MPIR_CVAR_CH4_NETMOD"),
    *("coll_han_bcast_low_module", "fs_ufs_lock_algorithm", "io_ompio_grouping_option"),
)


def listed() -> list[tuple[str, str, str]]:
    """Library, name and help."""
    rows = [line.split("\t") for line in LISTED.read_text(encoding="utf-8").splitlines()]
    found = [(row[0], row[1], row[2]) for row in rows]
    intel = parse(INTEL.read_text(encoding="utf-8"))
    return [*found, *(("impi", name, info.help) for name, info in intel.items())]


def test_what_a_library_says_is_a_program_or_file_is_refused() -> None:
    rows = listed()
    assert {row[0].split("-")[0] for row in rows} == {"openmpi", "mpich", "impi"}
    telling = [row for row in rows if NAMES_SOMETHING.search(row[2]) and row[1] not in OTHERWISE]
    assert len(telling) > 60
    missed = [
        row
        for row in telling
        if not runs_programs(row[1]) and not re.search("ALGORITHM$|_CCL$", row[1])
    ]
    assert not missed


@case_table("kind", BY_KIND)
def test_names_are_refused_by_kind(kind: str) -> None:
    assert [name for name in BY_KIND[kind] if not runs_programs(name)] == []
    for name in BY_KIND[kind]:
        with pytest.raises(UsageError) as refused:
            check_values({name: "1"}, "a model")
        assert refused.value.code == "parameter.refused"


def test_what_is_tuned_is_not_refused() -> None:
    assert [name for name in (*known_names(), *TUNED) if runs_programs(name)] == []


SPACE = Space(
    "own", (Parameter("map_by", ("core", "node"), "placement"), Parameter("in", ("a/b",), "arg"))
)


@case_table("library", [OLD, NEW])
@case_table("value", ["rankfile:file=/etc/passwd", "seq:file=hosts", "/etc/passwd"])
@case_table("name", ["map_by", "rank_by", "btl_tcp_if_include"])
def test_no_typed_value_names_a_file(library: object, value: str, name: str) -> None:
    """Neither of a parameter that the space has, nor of another one."""
    with pytest.raises(UsageError) as refused:
        with_extra_parameters(SPACE, [Setting({name: value})], library)  # type: ignore[arg-type]
    assert refused.value.code == "parameter.value_refused"


def test_levels_of_the_space_and_words_of_the_program_are_typed_freely() -> None:
    for values in (
        {"map_by": "node"},
        {"in": "a/b"},
        {"in": "data/other"},
        {"map_by": "ppr:1:node"},
    ):
        assert with_extra_parameters(SPACE, [Setting(values)], NEW) is SPACE
