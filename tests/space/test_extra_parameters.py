"""Any parameter may be named in a setting; what starts, loads or writes something may not."""

from __future__ import annotations

from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space
from autotune.space.extra_parameters import plain_names, with_extra_parameters
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table
from tests.refusals import refused

PARAMS = {
    "btl_tcp_links": ParamInfo("btl_tcp_links", "unsigned", "1"),
    "pml": ParamInfo("pml", "string", ""),
    "coll_tuned_bcast_algorithm": ParamInfo(
        "coll_tuned_bcast_algorithm", "int", "0", enum={0: "ignore", 5: "binary_tree"}
    ),
}
OLD = Library("openmpi", "4.1.4", "/nowhere", "/nowhere/mpirun", PARAMS)
NEW = Library("openmpi", "5.0.11", "/nowhere", "/nowhere/mpirun", PARAMS)
IMPI = Library("impi", "2021.18.1", "/nowhere", "/nowhere/mpirun")
MPICH = Library("mpich", "4.2", "/nowhere", "/nowhere/mpirun")
SPACE = Space("own", (Parameter("bind_to", ("core", "none"), "placement"),))


def taken(text: str, library: Library = OLD) -> tuple[Space, Setting]:
    setting, targets = plain_names(Setting.parse(text))
    return with_extra_parameters(SPACE, [setting], library, targets), setting


@case_table(
    ("text", "library", "target", "name"),
    [
        ("pml=ucx", OLD, "mca", "pml"),
        ("btl_tcp_links=2", OLD, "mca", "btl_tcp_links"),
        ("opal_common_ucx_tls=any", OLD, "mca", "opal_common_ucx_tls"),
        ("OMPI_MCA_btl_tcp_link=2", OLD, "mca", "btl_tcp_link"),
        ("PRTE_MCA_rmaps_x=2", NEW, "prte", "rmaps_x"),
        ("rmaps_something=2", NEW, "prte", "rmaps_something"),
        ("rmaps_something=2", OLD, "mca", "rmaps_something"),
        ("UCX_TLS=sm", OLD, "env", "UCX_TLS"),
        ("MPIR_CVAR_X=1", MPICH, "mca", "MPIR_CVAR_X"),
        ("hwloc_base_binding_policy=core", OLD, "placement", "bind_to"),
        ("hwloc_default_binding_policy=core", NEW, "placement", "bind_to"),
        ("OMPI_MCA_rmaps_base_mapping_policy=slot", OLD, "placement", "map_by"),
        ("HYDRA_BINDING=core", MPICH, "placement", "bind_to"),
        ("I_MPI_PIN=0", IMPI, "placement", "bind_to"),
        ("I_MPI_PIN_DOMAIN=numa,I_MPI_PIN=1", IMPI, "placement", "bind_to"),
        ("I_MPI_PIN_DOMAIN=omp", IMPI, "mca", "I_MPI_PIN_DOMAIN"),
    ],
)
def test_any_parameter_is_launched(text: str, library: Library, target: str, name: str) -> None:
    space, setting = taken(text, library)
    value = str(next(iter(setting.values())))
    assert space.launched(setting) == {target: {name: value}}
    assert not space.violations(setting, grid=False)


def test_a_word_of_the_library_is_its_number() -> None:
    space, setting = taken("coll_tuned_bcast_algorithm=binary_tree")
    assert space.launched(space.canonical(setting)) == {"mca": {"coll_tuned_bcast_algorithm": "5"}}


@case_table(
    ("text", "code", "named"),
    [
        ("btl_tcp_link=2", "parameter.unknown", "btl_tcp_links"),
        ("bnd_to=core", "parameter.unknown", "bind_to"),
        ("btl_tcp_links=x", "parameter.value", "'x'"),
        ("mca_base_component_path=a", "parameter.refused", "mca_base_component_path"),
        ("OMPI_MCA_plm_rsh_agent=a", "parameter.refused", "plm_rsh_agent"),
        ("LD_PRELOAD=a", "parameter.refused", "LD_PRELOAD"),
        (
            "coll_tuned_dynamic_rules_filename=a",
            "parameter.refused",
            "coll_tuned_dynamic_rules_filename",
        ),
        ('btl="/tmp/x"', "parameter.value_refused", "'/tmp/x'"),
        ("mpi_show_mca_params=all", "parameter.reserved", "mpi_show_mca_params"),
        ("bind_to=core,I_MPI_PIN=0", "parameter.conflict", "I_MPI_PIN"),
        (
            "bind_to=core,hwloc_base_binding_policy=none",
            "parameter.conflict",
            "hwloc_base_binding_policy",
        ),
    ],
)
def test_what_is_refused(text: str, code: str, named: str) -> None:
    with refused(UsageError, code) as told:
        taken(text)
    assert named in str(told.value)


def test_a_space_that_has_all_names_stays_the_same() -> None:
    assert with_extra_parameters(SPACE, [Setting({"bind_to": "core"})], OLD) is SPACE
