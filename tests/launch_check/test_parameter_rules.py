"""Rules on parameters, transports, single copy and start-up: faults, and what nearly is one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from autotune.check.launch_facts import FileInForce, LaunchFacts, NodeFacts, RankFacts
from autotune.check.launch_line import parse_line
from autotune.check.registry import RULES, examine
from autotune.check.transport_facts import SeenTransport, StartUpFacts
from autotune.parameters.catalogue import Catalogue
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table

OPEN_MPI, OLD_OPEN_MPI = "openmpi 5.0.11", "openmpi 4.1.4"
MPICH, INTEL_MPI = "mpich 4.0.2", "impi 2021.18.1"
CPUS = frozenset(range(4))


def _info(name: str, kind: str = "int", default: str = "0", **more: object) -> ParamInfo:
    framework, _, rest = name.partition("_")
    component = str(more.pop("component", rest.partition("_")[0]))
    enum = more.pop("enum", {})
    return ParamInfo(name, kind, default, framework, component, enum=enum, **more)  # type: ignore[arg-type]


LISTED = {
    OPEN_MPI: {
        "mca": [
            _info("btl", "string", ""),
            _info("pml", "string", ""),
            _info("btl_sm_eager_limit", "size_t", "4096"),
            _info("btl_ofi_mode", "int", "1"),
            _info("mpi_yield_when_idle", "bool", "false", component="base"),
            _info("coll_tuned_use_dynamic_rules", "bool", "false"),
            _info("coll_tuned_bcast_algorithm", enum={0: "ignore", 6: "binomial"}),
            _info("coll_tuned_allreduce_algorithm", enum={0: "ignore", 3: "doubling", 4: "ring"}),
            _info("smsc", "string", ""),
        ],
        "prte": [_info("plm_ssh_num_concurrent", default="128"), _info("display", "string", "")],
        "pmix": [_info("ptl_base_max_retries", default="2")],
        "ucx": [ParamInfo("UCX_TLS", "string", "all", "UCX")],
    },
    OLD_OPEN_MPI: {
        "mca": [_info("btl_vader_single_copy_mechanism", "string", "cma"), _info("btl", "string")]
    },
    MPICH: {
        "mca": [
            ParamInfo("MPIR_CVAR_NOLOCAL", "int", "0"),
            ParamInfo("MPIR_CVAR_CH4_CMA_ENABLE", "int", "1"),
            ParamInfo(
                "MPIR_CVAR_BCAST_INTRA_ALGORITHM",
                "string",
                "auto",
                enum={0: "auto", 1: "binomial"},
                by_name=True,
            ),
        ],
        "libfabric": [ParamInfo("FI_PROVIDER", "string", "", "libfabric")],
    },
    INTEL_MPI: {
        "mca": [ParamInfo("I_MPI_FABRICS", "string", ""), ParamInfo("I_MPI_SHM_CMA", "int", "")]
    },
}


@dataclass(frozen=True)
class Launch:
    """A line with what is around it, the code that it is about, and the right line.

    ``right`` is "" if no line cures it, and None if the code must not be found.
    """

    code: str
    line: str
    right: str | None
    mpi: str = OPEN_MPI
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    transport: SeenTransport = field(default_factory=SeenTransport)
    node: NodeFacts = field(default_factory=NodeFacts)
    start_up: StartUpFacts | None = None
    spaces: tuple[int, ...] = (1, 1)
    weight: str = ""

    def facts(self) -> LaunchFacts:
        """The launch as a check knows it."""
        family, version = self.mpi.split()
        layers = {k: {i.name: i for i in infos} for k, infos in LISTED[self.mpi].items()}
        library = Library(family, version, "/opt/bin", "/opt/bin/mpirun", layers["mca"])
        line = parse_line(shlex.split(self.line), library)
        return LaunchFacts(
            line,
            environment={**self.environment, **line.assignments},
            library=library,
            node=replace(self.node, cpus=CPUS, online_cpus=CPUS),
            ranks=tuple(
                RankFacts(
                    number,
                    "node",
                    cpus=frozenset({number}),
                    threads=(frozenset({number}),),
                    world_size=line.ranks,
                    namespaces={"user": space},
                )
                for number, space in enumerate(self.spaces)
            ),
            parameter_files=tuple(FileInForce(path, v) for path, v in self.files.items()),
            catalogue=Catalogue(
                family,
                version,
                layers,
                components={"btl": frozenset({"sm", "self", "tcp", "ofi"})}
                if family == "openmpi"
                else {},
            ),
            transport=self.transport,
            start_up=self.start_up,
        )


OB1, UCX = SeenTransport("ob1: sm"), SeenTransport("ucx: sysv/memory, cma/memory")
HOME, SYSTEM = "/home/me/.openmpi/mca-params.conf", "/opt/etc/openmpi-mca-params.conf"
FAULTS = [
    Launch(
        "parameters.unknown",
        "mpirun -n 2 --mca nothing_of_this_kind 1 ./a.out",
        "mpirun -n 2 ./a.out",
    ),
    Launch(
        "parameters.unknown", "mpirun -n 2 ./a.out", "", files={SYSTEM: {"no_such_thing_here": "1"}}
    ),
    Launch(
        "parameters.misspelt",
        "mpirun -n 2 --mca btl_sm_eager_limt 1 ./a.out",
        "mpirun -n 2 --mca btl_sm_eager_limit 1 ./a.out",
    ),
    Launch(
        "parameters.misspelt",
        "mpirun -n 2 -x UCX_TSL=sm ./a.out",
        "mpirun -n 2 -x UCX_TLS=sm ./a.out",
        transport=UCX,
    ),
    Launch(
        "parameters.misspelt",
        "OMPI_MCA_btl_sm_eager_limt=1 mpirun -n 2 ./a.out",
        "OMPI_MCA_btl_sm_eager_limit=1 mpirun -n 2 ./a.out",
    ),
    Launch(
        "parameters.version",
        "mpirun -n 2 --mca plm_rsh_num_concurrent 5 ./a.out",
        "mpirun -n 2 --prtemca plm_ssh_num_concurrent 5 ./a.out",
    ),
    Launch(
        "parameters.version",
        "mpirun -n 2 --mca smsc ^cma ./a.out",
        "mpirun -n 2 --mca btl_vader_single_copy_mechanism none ./a.out",
        OLD_OPEN_MPI,
    ),
    Launch(
        "parameters.layer",
        "mpirun -n 2 --pmixmca btl_sm_eager_limit 5 ./a.out",
        "mpirun -n 2 --mca btl_sm_eager_limit 5 ./a.out",
    ),
    Launch(
        "parameters.layer",
        "mpirun -n 2 --mca display map ./a.out",
        "mpirun -n 2 --prtemca display map ./a.out",
    ),
    Launch(
        "parameters.layer",
        "OMPI_MCA_plm_ssh_num_concurrent=5 mpirun -n 2 ./a.out",
        "PRTE_MCA_plm_ssh_num_concurrent=5 mpirun -n 2 ./a.out",
    ),
    Launch("parameters.value", "mpirun -n 2 --mca mpi_yield_when_idle often ./a.out", ""),
    Launch(
        "parameters.value",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca "
        "coll_tuned_bcast_algorithm binomail ./a.out",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_bcast_algorithm "
        "binomial ./a.out",
    ),
    Launch(
        "parameters.value",
        "mpirun -n 2 --mca btl sm,slf ./a.out",
        "mpirun -n 2 --mca btl sm,self ./a.out",
    ),
    Launch(
        "parameters.value",
        "mpiexec -n 2 -genv MPIR_CVAR_BCAST_INTRA_ALGORITHM binomal ./a.out",
        "mpiexec -n 2 -genv MPIR_CVAR_BCAST_INTRA_ALGORITHM binomial ./a.out",
        MPICH,
    ),
    Launch(
        "parameters.overridden",
        "mpirun -n 2 --mca btl_sm_eager_limit 5 --mca btl_sm_eager_limit 6 ./a.out",
        "mpirun -n 2 --mca btl_sm_eager_limit 5 ./a.out",
    ),
    Launch(
        "parameters.overridden",
        "mpirun -n 2 ./a.out",
        "",
        environment={"OMPI_MCA_btl_sm_eager_limit": "5"},
        files={HOME: {"btl_sm_eager_limit": "6"}},
        weight="SLIGHT",
    ),
    Launch(
        "parameters.overridden",
        "mpirun -n 2 --tune t ./a.out",
        "",
        files={HOME: {"btl_sm_eager_limit": "6"}, "t": {"btl_sm_eager_limit": "5"}},
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca coll_tuned_bcast_algorithm 6 ./a.out",
        "mpirun -n 2 --mca coll_tuned_bcast_algorithm 6 --mca coll_tuned_use_dynamic_rules 1 "
        "./a.out",
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca btl_sm_eager_limit 5 ./a.out",
        "mpirun -n 2 ./a.out",
        transport=UCX,
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca pml ucx --mca btl_sm_eager_limit 5 ./a.out",
        "mpirun -n 2 --mca pml ucx ./a.out",
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca btl ^ofi --mca btl_ofi_mode 1 ./a.out",
        "mpirun -n 2 --mca btl ^ofi ./a.out",
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca btl_ofi_mode 1 ./a.out",
        "mpirun -n 2 ./a.out",
        transport=SeenTransport("ob1: sm", inactive={"btl_ofi_mode": "not opened"}),
    ),
    Launch(
        "parameters.wrong_results",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca "
        "coll_tuned_allreduce_algorithm 4 ./a.out",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 ./a.out",
    ),
    Launch(
        "transport.tcp",
        "mpirun -n 2 --mca btl self,tcp ./a.out",
        "mpirun -n 2 ./a.out",
        transport=SeenTransport("ob1: tcp"),
    ),
    Launch(
        "transport.tcp",
        "mpirun -n 2 --mca btl self,tcp ./a.out",
        "mpirun -n 2 ./a.out",
        files={SYSTEM: {"pml": "^ucx"}},
    ),
    Launch(
        "transport.tcp",
        "mpirun -n 2 --mca pml ucx -x UCX_TLS=tcp,self ./a.out",
        "mpirun -n 2 --mca pml ucx ./a.out",
    ),
    Launch(
        "transport.tcp",
        "mpiexec -n 2 -genv MPIR_CVAR_NOLOCAL 1 ./a.out",
        "mpiexec -n 2 ./a.out",
        MPICH,
        transport=SeenTransport(device="ch4:ofi"),
    ),
    Launch(
        "transport.tcp", "I_MPI_FABRICS=ofi mpirun -n 2 ./a.out", "mpirun -n 2 ./a.out", INTEL_MPI
    ),
    Launch(
        "transport.provider",
        "mpiexec -n 2 -genv FI_PROVIDER sockets ./a.out",
        "mpiexec -n 2 -genv FI_PROVIDER tcp ./a.out",
        MPICH,
    ),
    Launch(
        "single_copy.forbidden",
        "mpirun -n 2 ./a.out",
        "mpirun -n 2 --mca smsc ^cma ./a.out",
        node=NodeFacts(kernel_copy=False),
    ),
    Launch(
        "single_copy.forbidden",
        "mpirun -n 2 --mca btl_vader_single_copy_mechanism cma ./a.out",
        "mpirun -n 2 --mca btl_vader_single_copy_mechanism none ./a.out",
        OLD_OPEN_MPI,
        node=NodeFacts(kernel_copy=False),
    ),
    Launch(
        "single_copy.forbidden",
        "mpiexec -n 2 ./a.out",
        "mpiexec -n 2 -genv MPIR_CVAR_CH4_CMA_ENABLE 0 ./a.out",
        MPICH,
        node=NodeFacts(kernel_copy=False),
    ),
    Launch(
        "single_copy.namespaces",
        "mpirun -n 2 ./a.out",
        "mpirun -n 2 -x UCX_TLS=^cma ./a.out",
        spaces=(1, 2),
        transport=UCX,
    ),
    Launch(
        "start_up.pci",
        "mpirun -n 2 ./a.out",
        "HWLOC_COMPONENTS=-pci mpirun -n 2 ./a.out",
        start_up=StartUpFacts(3.0, {"pci": 2.5}),
    ),
    Launch(
        "start_up.resolver",
        "mpirun -n 2 ./a.out",
        "",
        start_up=StartUpFacts(6.0, {"resolver": 5.0}),
    ),
    Launch(
        "start_up.ofi",
        "mpirun -n 2 ./a.out",
        "mpirun -n 2 --mca btl ^ofi ./a.out",
        start_up=StartUpFacts(1.2, {"ofi": 0.8}, program_seconds=0.3),
    ),
]
NEARLY = [
    # A name of its project before the parameter's, and a variable of nobody.
    Launch(
        "parameters.unknown",
        "mpirun -n 2 --mca opal_btl_sm_eager_limit 1 -x MY_FLAG=1 ./a.out",
        None,
    ),
    Launch("parameters.misspelt", "mpirun -n 2 --mca btl_sm_eager_limit 1 ./a.out", None),
    # UCX and libfabric have variables that no list has.
    Launch("parameters.misspelt", "mpirun -n 2 -x UCX_SOMETHING_ELSE_ENTIRELY=1 ./a.out", None),
    Launch("parameters.version", "mpirun -n 2 --mca btl ^ofi ./a.out", None),
    Launch(
        "parameters.layer",
        "mpirun -n 2 --prtemca display map --mca ptl_base_max_retries 3 "
        "--pmixmca ptl_base_max_retries 3 ./a.out",
        None,
    ),
    Launch("parameters.layer", "PRTE_MCA_plm_ssh_num_concurrent=5 mpirun -n 2 ./a.out", None),
    Launch(
        "parameters.value",
        "mpirun -n 2 --mca mpi_yield_when_idle true --mca btl sm,vader,self "
        "--mca btl_sm_eager_limit 64k ./a.out",
        None,
    ),
    Launch("parameters.value", "mpirun -n 2 --mca btl ^nothing ./a.out", None),
    Launch(
        "parameters.overridden",
        "mpirun -n 2 --mca btl_sm_eager_limit 5 ./a.out",
        None,
        environment={"OMPI_MCA_btl_sm_eager_limit": "6"},
        files={SYSTEM: {"btl_sm_eager_limit": "7"}},
    ),
    Launch(
        "parameters.overridden",
        "mpirun -n 2 ./a.out",
        None,
        environment={"OMPI_MCA_btl_sm_eager_limit": "4k"},
        files={HOME: {"btl_sm_eager_limit": "4096"}},
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca "
        "coll_tuned_bcast_algorithm 6 --mca btl_sm_eager_limit 5 ./a.out",
        None,
        transport=OB1,
    ),
    # Variables of UCX are set for launches with it; a system's file is for every launch.
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 ./a.out",
        None,
        environment={"UCX_TLS": "sm"},
        transport=OB1,
    ),
    Launch(
        "parameters.no_effect",
        "mpirun -n 2 --mca pml ucx ./a.out",
        None,
        files={SYSTEM: {"btl_sm_eager_limit": "5"}},
    ),
    Launch(
        "parameters.wrong_results",
        "mpirun -n 2 --mca coll_tuned_use_dynamic_rules 1 --mca "
        "coll_tuned_allreduce_algorithm 3 ./a.out",
        None,
    ),
    Launch("transport.tcp", "mpirun -n 2 --mca btl self,sm,tcp ./a.out", None, transport=OB1),
    Launch("transport.tcp", "mpirun -n 2 --mca pml ucx --mca btl self,tcp ./a.out", None),
    Launch(
        "transport.tcp",
        "mpiexec -n 2 -genv MPIR_CVAR_NOLOCAL 1 ./a.out",
        None,
        MPICH,
        transport=SeenTransport(device="ch4:ucx"),
    ),
    Launch("transport.provider", "mpiexec -n 2 -genv FI_PROVIDER tcp ./a.out", None, MPICH),
    Launch(
        "single_copy.forbidden",
        "mpirun -n 2 --mca smsc ^cma ./a.out",
        None,
        node=NodeFacts(kernel_copy=False),
    ),
    Launch(
        "single_copy.forbidden",
        "mpirun -n 2 ./a.out",
        None,
        node=NodeFacts(kernel_copy=True, container="docker", ptrace_scope=1),
    ),
    Launch(
        "single_copy.forbidden", "mpirun -n 2 ./a.out", None, node=NodeFacts(container="docker")
    ),
    Launch("single_copy.namespaces", "mpirun -n 2 -x UCX_TLS=^cma ./a.out", None, spaces=(1, 2)),
    Launch("single_copy.namespaces", "mpirun -n 2 ./a.out", None, spaces=(1, 2), transport=OB1),
    Launch(
        "start_up.pci",
        "HWLOC_COMPONENTS=-pci mpirun -n 2 ./a.out",
        None,
        start_up=StartUpFacts(3.0, {"pci": 2.5}),
    ),
    Launch(
        "start_up.resolver",
        "mpirun -n 2 ./a.out",
        None,
        start_up=StartUpFacts(6.0, {"resolver": 0.4}),
    ),
    # The program takes longer than its start.
    Launch(
        "start_up.ofi",
        "mpirun -n 2 ./a.out",
        None,
        start_up=StartUpFacts(1.2, {"ofi": 0.8}, program_seconds=30.0),
    ),
]
CODES = {launch.code for launch in FAULTS}


@case_table("launch", FAULTS)
def test_a_fault_is_named_with_its_line(launch: Launch) -> None:
    findings = {one.code: one for one in examine(launch.facts())}
    assert launch.code in findings
    found = findings[launch.code]
    assert shlex.join(found.corrected_line or ()) == shlex.join(shlex.split(launch.right or ""))
    assert found.corrected_line or found.advice
    assert not launch.weight or found.weight.name == launch.weight


@case_table("launch", NEARLY)
def test_what_is_nearly_a_fault_is_none(launch: Launch) -> None:
    assert launch.code not in {one.code for one in examine(launch.facts())}


def test_the_corrected_line_of_each_fault_has_it_no_more() -> None:
    for launch in FAULTS:
        if launch.right:
            again = replace(launch, line=launch.right, transport=SeenTransport(), environment={})
            assert launch.code not in {one.code for one in examine(again.facts())}, launch.line


def test_every_rule_of_these_is_tested_both_ways() -> None:
    subjects = ("parameters.", "transport.", "single_copy.", "start_up.")
    own = {rule.code for rule in RULES if rule.code.startswith(subjects)}
    assert own <= CODES
    assert own <= {launch.code for launch in NEARLY}


@pytest.mark.parametrize(("nodes", "is_told"), [("1", True), ("2", False)])
def test_tcp_is_told_of_a_batch_job_on_one_node(nodes: str, is_told: bool) -> None:
    launch = Launch("transport.tcp", "mpirun -n 2 --mca btl self,tcp ./a.out", "")
    facts = replace(launch.facts(), hosts_here=False, ranks=(), environment={"SLURM_NNODES": nodes})
    assert ("transport.tcp" in [one.code for one in examine(facts)]) == is_told
