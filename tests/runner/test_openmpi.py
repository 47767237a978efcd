"""Command lines of both Open MPI generations, and what is read back from their files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from runner.cpus import cpus_of
from runner.mpi.library import Library, ParamInfo
from runner.mpi.openmpi.adapter import OpenMPI
from runner.mpi.openmpi.shown import SHOW_FILE, SHOW_PARAMETER, parse_run_values
from runner.placement import read_back_cpus, read_back_placement
from runner.types import LaunchSpec
from tests.case_table import case_table

PARAMS = {
    "btl_sm_eager_limit": ParamInfo("btl_sm_eager_limit", "size_t", "4096"),
    "btl_tcp_links": ParamInfo("btl_tcp_links", "int", "1"),
    "mpi_yield_when_idle": ParamInfo("mpi_yield_when_idle", "bool", "false"),
    "mca_base_param_files": ParamInfo(
        "mca_base_param_files", "string", "/build/etc/openmpi-mca-params.conf"
    ),
}
SHOWN = """#
# This file was automatically generated
# by MPI_COMM_WORLD rank 0 (out of a total of 4) on node
#
mca_base_param_files=/opt/mpi/etc/openmpi-mca-params.conf (default)
btl_sm_eager_limit=16384 (environment)
mpi_yield_when_idle=true (file (/home/u/.openmpi/mca-params.conf:2))
opal_signal=6,7,8,11 (default)
coll_base_note=odd (value) (default)
"""


def openmpi(version: str) -> OpenMPI:
    return OpenMPI(Library("openmpi", version, "/opt/mpi/bin", "/opt/mpi/bin/mpirun", PARAMS))


def spec(**more: object) -> LaunchSpec:
    return dataclasses.replace(LaunchSpec(program=("./a",), ranks=4), **more)  # type: ignore[arg-type]


def test_the_shown_file_is_read() -> None:
    size, values = parse_run_values(SHOWN)
    assert size == 4
    assert values["btl_sm_eager_limit"] == ("16384", "environment")
    assert values["mpi_yield_when_idle"] == ("true", "file (/home/u/.openmpi/mca-params.conf:2)")
    assert values["coll_base_note"] == ("odd (value)", "default")
    assert values["opal_signal"] == ("6,7,8,11", "default")


def test_each_generation_says_placement_its_own_way() -> None:
    wanted = spec(oversubscribe=True, placement={"map_by": "core", "bind_to": "core"})
    old = openmpi("4.1.8").command(wanted, Path("s"))
    new = openmpi("5.0.11").command(wanted, Path("s"))
    assert "--oversubscribe" in old
    assert old[old.index("--map-by") + 1] == "core"
    assert "--oversubscribe" not in new
    assert new[new.index("--map-by") + 1] == "core:OVERSUBSCRIBE"
    for words in (old, new):
        assert words[words.index("--bind-to") + 1] == "core:overload-allowed"  # data
        assert words[-1] == "./a"


def test_prrte_gets_one_mapping_also_if_it_is_among_the_fixed_options() -> None:
    for host in ((), ("--host", "a:1,b:1")):
        for mapping in ("node", "ppr:2:node:OVERSUBSCRIBE"):
            wanted = spec(
                oversubscribe=True,
                placement={"bind_to": "core"},
                launch_options=("--map-by", mapping, *host),
            )
            words = openmpi("5.0.11").command(wanted, Path("s"))
            assert words.count("--map-by") == 1
            policy = words[words.index("--map-by") + 1]
            assert policy == f"{mapping.removesuffix(':OVERSUBSCRIBE')}:OVERSUBSCRIBE"
            assert words[words.index("--bind-to") + 1] == "core:overload-allowed"  # data


@pytest.mark.parametrize("version", ["4.1.8", "5.0.11"])
def test_oversubscribed_ranks_of_other_nodes_are_told_to_yield(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "mpi_yield_when_idle"
    monkeypatch.delenv(f"OMPI_MCA_{name}", raising=False)
    launcher, hosts = openmpi(version), ("--hostfile", "h")
    asked = spec(ranks=4, oversubscribe=True, launch_options=hosts)
    words = launcher.command(asked, Path("s"))
    assert words[words.index(name) - 1 : words.index(name) + 2] == ["--mca", name, "1"]
    # One node's ranks yield by themselves; ranks with a core each shall not.
    for other in ({"launch_options": ()}, {"oversubscribe": False}):
        assert name not in launcher.command(dataclasses.replace(asked, **other), Path("s"))
    # Who names it, decides it.
    chosen = launcher.command(
        dataclasses.replace(asked, parameters={"mca": {name: "0"}}), Path("s")
    )
    assert chosen.count(name) == 1
    assert chosen[chosen.index(name) + 1] == "0"
    monkeypatch.setenv(f"OMPI_MCA_{name}", "0")
    assert name not in launcher.command(asked, Path("s"))


def test_each_generation_is_told_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "runner.mpi.openmpi.adapter.core_numbers", lambda cpus: {c + 10 for c in cpus}
    )
    for version, option, name in (
        ("4.1.8", "--mca", "hwloc_base_cpu_list"),
        ("5.0.11", "--prtemca", "hwloc_default_cpu_list"),
    ):
        launcher = openmpi(version)
        wanted = launcher.confine(spec(launch_options=("--mca", "a", "b")), frozenset({1, 2}))
        words = launcher.command(wanted, Path("s"))
        at = words.index(name)
        assert words[at - 1 : at + 2] == [option, name, "11-12"]
        assert at < words.index("a")


@case_table(
    ("version", "ranks", "placement", "over", "expected", "listed"),
    [
        ("5.0.11", 2, {}, False, None, True),
        ("5.0.11", 3, {}, False, "core", True),
        ("5.0.11", 3, {}, True, None, True),
        ("5.0.11", 2, {"map_by": "slot"}, False, None, True),
        ("5.0.11", 2, {"map_by": "numa"}, False, "none", True),
        ("5.0.11", 2, {"map_by": "package:PE=2"}, False, "none", True),
        ("5.0.11", 2, {"map_by": "numa", "bind_to": "core"}, False, "core", True),
        # Asked for: left as it is, and told by read-back.
        ("5.0.11", 2, {"bind_to": "numa"}, False, "numa", True),
        ("4.1.8", 3, {}, False, None, True),
        ("4.1.8", 3, {"bind_to": "numa"}, False, "numa", True),
        ("4.1.8", 3, {"map_by": "slot"}, False, "none", False),
        ("4.1.8", 3, {"map_by": "slot", "bind_to": "core"}, False, "core", False),
    ],
)
def test_what_would_be_bound_beyond_the_cpus_is_left_unbound(
    version: str,
    ranks: int,
    placement: dict[str, str],
    over: bool,
    expected: str | None,
    listed: bool,
) -> None:
    launcher = openmpi(version)
    asked = spec(ranks=ranks, placement=placement, oversubscribe=over)
    words = launcher.command(launcher.confine(asked, frozenset({0})), Path("s"))
    found = words[words.index("--bind-to") + 1] if "--bind-to" in words else None
    assert found == expected
    assert words.count("--bind-to") <= 1
    assert any("cpu_list" in word for word in words) == listed


def test_bindings_are_compared_with_the_cpus() -> None:
    far = frozenset({20000, 20001})
    states = {
        text: read_back_cpus(far, text.split(), outside=False).state
        for text in ("20000 20001", "20000-20001", "20000 3", "20000-20002", "")
    }
    assert states == {
        "20000 20001": "in force",
        "20000-20001": "in force",
        "20000 3": "altered",
        "20000-20002": "altered",
        "": "not observable",
    }
    assert read_back_cpus(far, [], outside=True).state == "altered"


def test_parameters_of_the_run_time_environment() -> None:
    wanted = spec(parameters={"prte": {"rmaps_x": "1"}})
    assert "--prtemca" in openmpi("5.0.11").command(wanted, Path("s"))
    assert "--prtemca" not in openmpi("4.1.8").command(wanted, Path("s"))


def test_the_four_states_of_a_parameter(tmp_path: Path) -> None:
    (tmp_path / SHOW_FILE).write_text(SHOWN)
    asked = {
        "btl_sm_eager_limit": "16k",
        "mpi_yield_when_idle": "0",
        "btl_tcp_links": "2",
        "no_such_thing": "1",
    }
    probe = openmpi("5.0.11").probe(spec(parameters={"mca": asked}), tmp_path)
    states = {name: r.state for name, r in probe.read_back.items()}
    assert states == {
        "btl_sm_eager_limit": "in force",
        "mpi_yield_when_idle": "altered",
        "btl_tcp_links": "inactive",
        "no_such_thing": "unknown",
    }
    assert probe.world_size == 4
    assert probe.library_mismatch is None


@pytest.mark.parametrize(
    ("selected", "listed", "state"),
    [
        ("^ucx,cm", "", "inactive"),
        ("^cm", "", "unknown"),
        # The library's own list was made with ^ucx; the run selected otherwise.
        ("ob1", "^ucx", "inactive"),
        ("ucx", "^ucx", "unknown"),
        ("ob1", "", "unknown"),
    ],
)
def test_parameters_of_a_deselected_component_do_nothing(
    tmp_path: Path, selected: str, listed: str, state: str
) -> None:
    (tmp_path / SHOW_FILE).write_text(f"{SHOWN}pml={selected} (environment)\n")
    library = openmpi("4.1.4").library
    params = library.params | {"pml": ParamInfo("pml", "string", listed)}
    adapter = OpenMPI(dataclasses.replace(library, params=params))
    back = adapter.probe(spec(parameters={"mca": {"pml_ucx_priority": "3"}}), tmp_path).read_back
    found = back["pml_ucx_priority"]
    assert found.state == state
    said = f"pml={selected} excludes its component ucx"
    assert found.source == (said if state == "inactive" else None)


def test_what_was_not_asked_for_is_listed_as_inherited(tmp_path: Path) -> None:
    (tmp_path / SHOW_FILE).write_text(SHOWN)
    probe = openmpi("5.0.11").probe(
        spec(parameters={"mca": {"btl_sm_eager_limit": "16384"}}), tmp_path
    )
    where = "file /home/u/.openmpi/mca-params.conf:2"
    assert probe.inherited_values == {"mpi_yield_when_idle": f"true ({where})"}


def test_another_library_inside_the_ranks_is_noticed(tmp_path: Path) -> None:
    (tmp_path / SHOW_FILE).write_text(SHOWN.replace("/opt/mpi/etc", "/usr/etc"))
    probe = openmpi("5.0.11").probe(spec(), tmp_path)
    assert probe.library_mismatch is not None
    assert "/usr/etc" in probe.library_mismatch
    # The launch itself reads a copy of the system's files there.
    copied = openmpi("5.0.11").probe(spec(env={"OPAL_SYSCONFDIR": "/usr/etc"}), tmp_path)
    assert copied.library_mismatch is None


def test_a_moved_library_is_known_by_its_parameters(tmp_path: Path) -> None:
    """Its parameter file is below the launcher's place, so only the names tell."""
    (tmp_path / SHOW_FILE).write_text(SHOWN + "mpi_ft_enable=true (default)\n")
    library = openmpi("4.1.8").library
    whole = library.params | {
        name: ParamInfo(name, "string", "") for name in (SHOW_PARAMETER, "mpi_yield_when_idle")
    }
    adapter = OpenMPI(dataclasses.replace(library, params=whole))
    said = str(adapter.probe(spec(), tmp_path).library_mismatch)
    assert "mpi_ft_enable" in said
    assert "4.1.8" in said
    known = whole | {"mpi_ft_enable": ParamInfo("mpi_ft_enable", "bool", "true")}
    same = OpenMPI(dataclasses.replace(library, params=known))
    assert same.probe(spec(), tmp_path).library_mismatch is None


def test_no_file_means_no_mpi(tmp_path: Path) -> None:
    assert openmpi("5.0.11").probe(spec(), tmp_path).is_initialised is False


def test_inherited_settings_come_from_variables_and_files(tmp_path: Path) -> None:
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("# note\nbtl = self,sm\n")
    found = openmpi("5.0.11").inherited_settings({"HOME": str(tmp_path), "OMPI_MCA_pml": "ob1"})
    assert found["OMPI_MCA_pml"] == "ob1"
    assert found[f"{tmp_path}/.openmpi/mca-params.conf:btl"] == "self,sm"


@pytest.mark.parametrize(("version", "launcher_reads"), [("4.1.8", False), ("5.0.11", True)])
def test_named_parameter_files_take_the_place_of_the_usual(
    tmp_path: Path, version: str, launcher_reads: bool
) -> None:
    (tmp_path / ".openmpi").mkdir()
    usual = tmp_path / ".openmpi" / "mca-params.conf"
    usual.write_text("btl = self,sm\n")
    other = tmp_path / "other.conf"
    other.write_text("pml = ob1\n")
    env = {"HOME": str(tmp_path), "OMPI_MCA_mca_base_param_files": f"{other},/none"}
    found = openmpi(version).inherited_settings(env)
    assert found[f"{other}:pml"] == "ob1"
    assert (f"{usual}:btl" in found) is launcher_reads


def test_a_clean_environment_has_no_mpi_settings() -> None:
    env = openmpi("4.1.8").environment(spec(clean_env=True), {"OMPI_MCA_pml": "ob1", "A": "b"})
    assert "OMPI_MCA_pml" not in env
    assert env["A"] == "b"


@case_table(("text", "cpus"), [("0", {0}), ("0-2,5", {0, 1, 2, 5}), ("3,1", {1, 3}), ("", set())])
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus


def test_binding_is_read_from_the_ranks() -> None:
    bound = read_back_placement({"bind_to": "hwthread"}, ["0", "1"])["bind_to"]
    assert bound.state == "in force"
    loose = read_back_placement({"bind_to": "hwthread"}, ["0-1", "0-1"])["bind_to"]
    assert loose.state == "altered"
    assert read_back_placement({"bind_to": "core"}, [])["bind_to"].state == "not observable"
    assert read_back_placement({"map_by": "node"}, ["0"])["map_by"].state == "not observable"
