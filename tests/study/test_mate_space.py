"""Launches of settings with workers: processes, cores and words that go together."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.api.target import find_target
from autotune.cli.space_commands import show
from autotune.config.app import App, Input, load_app, require_tunable
from autotune.config.cluster import Cluster
from autotune.errors import UsageError
from autotune.measurement.study_key import study_key
from autotune.space import DEFAULT, Setting, Space, load_space
from autotune.targets.layout import Layout, require_room
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from runner.launch import Runner
from runner.machine import describe_machine
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.placement import read_back_placement
from runner.programs.apps.jacobi3d.inputs import INPUTS
from runner.runtimes.mate import Config
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW, OLD
from tests.started import started

SHOW = """
import json, os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
cpus = world.gather(sorted(os.sched_getaffinity(0)))
if world.rank == 0:
    print(json.dumps({"args": sys.argv[1:], "size": world.size, "cpus": cpus}))
"""


def app(program: str = "program") -> App:
    return App(
        name="own", command=("{python}", program), tunable=("mate",), inputs={"default": Input()}
    )


def target(cores: int, library: Library = NEW, ranks: int | None = None, **more: object) -> Target:
    cluster = Cluster(name="own", cores_per_node=cores)
    return Target(app(), "default", ranks or cores, cluster, library, cores, **more)  # type: ignore[arg-type]


def space_of(wanted: Target, name: str = "mate") -> Space:
    return load_space(name, wanted.library, wanted.facts, wanted.app_facts)


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_the_default_is_flat(library: Library) -> None:
    wanted = target(4, library)
    spec = wanted.spec(space_of(wanted), DEFAULT)
    assert spec == wanted.spec(None)
    assert spec.ranks == 4
    assert spec.program == (sys.executable, "program")
    assert spec.placement == {}


def test_the_defaults_of_the_space_are_those_of_the_runtime() -> None:
    space = space_of(target(4))
    config = Config()
    for name, value in {
        "block_size": config.block_size,
        "split": config.split,
        "in_process": int(config.in_process),
        "affinity": config.affinity,
        "idle_spin": config.idle_spin_us,
        "idle_sleep": config.idle_sleep_us,
        "thread_level": config.thread_level,
        "workers": config.workers,
    }.items():
        assert space[name].default == value, name


def test_the_launcher_has_its_path_where_the_shell_finds_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is copied must start the MPI that was measured."""
    for folder in ("ours", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mpirun").touch(mode=0o755)
    ours = str(tmp_path / "ours" / "mpirun")
    wanted = target(4, dataclasses.replace(NEW, launcher=ours))
    found = {}
    for folder in ("ours", "other", "none"):
        monkeypatch.setenv("PATH", str(tmp_path / folder))
        line = wanted.mpirun_line(adapter(wanted.library), None, Setting())
        found[folder] = line.split(" -n ")[0]
    assert found == {"ours": "mpirun", "other": ours, "none": ours}


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_each_process_gets_the_cores_of_its_workers(library: Library) -> None:
    wanted = target(4, library)
    spec = wanted.spec(space_of(wanted), Setting.parse("variant=mate,workers=2,odf=2,local_x=2"))
    assert spec.ranks == 2
    assert spec.placement == {"map_by": "slot:PE=2", "bind_to": "core"}
    assert spec.program[2:] == (
        *("--variant", "mate", "--workers", "2"),
        *("--ranks-per-process", "4", "--local-grid", "2x1x2"),
    )
    line = wanted.mpirun_line(
        adapter(library), space_of(wanted), Setting.parse("variant=mate,workers=4")
    )
    assert line.startswith(f"{library.launcher} -n 1 ")
    assert " --map-by slot:PE=4 --bind-to core " in line  # data
    assert line.endswith(" --workers 4 --ranks-per-process 4 --local-grid 1x1x4")


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 64]), st.integers(0, 10**6))
def test_every_sampled_launch_uses_all_cores(cores: int, seed: int) -> None:
    wanted = target(cores)
    space = space_of(wanted)
    setting = space.sample(np.random.default_rng(seed))
    spec = wanted.spec(space, setting)
    options = dict(zip(spec.program[2::2], spec.program[3::2], strict=False))
    workers = int(setting.get("workers", 1))
    assert spec.ranks * workers == cores
    assert ("--workers" in spec.program) == (setting.get("variant") == "mate")
    if "variant" in setting and "--in-process" not in spec.program:
        assert int(options["--workers"]) == workers
    bound = {"map_by": f"slot:PE={workers}", "bind_to": "core"} if workers > 1 else {}
    assert spec.placement == bound
    assert spec.oversubscribe is False


@case_table(
    ("chosen", "expected"),
    [
        ({}, {"map_by": "slot:PE=2", "bind_to": "core"}),
        ({"map_by": "numa"}, {"map_by": "numa:PE=2", "bind_to": "core"}),
        ({"bind_to": "core"}, {"map_by": "slot:PE=2", "bind_to": "core"}),
        ({"bind_to": "none", "map_by": "numa"}, {"bind_to": "none", "map_by": "numa"}),
        ({"bind_to": "package"}, {"bind_to": "package"}),
        ({"map_by": "slot:PE=4"}, {"map_by": "slot:PE=4"}),
    ],
)
def test_what_was_asked_for_stays(chosen: dict[str, str], expected: dict[str, str]) -> None:
    open_mpi, mpich = (adapter(Library(name, "5.0", "", "")) for name in ("openmpi", "mpich"))
    assert open_mpi.share_cores(chosen, 2) == expected
    assert open_mpi.share_cores(chosen, 1) == chosen
    assert mpich.share_cores(chosen, 2) == chosen
    assert open_mpi.share_cores(chosen, 2, ("--bind-to", "none")) == chosen


def test_more_ranks_than_cores_are_not_bound() -> None:
    wanted = target(2, ranks=4)
    spec = wanted.spec(space_of(wanted), Setting.parse("variant=mate,workers=2"))
    assert (spec.ranks, spec.placement, spec.oversubscribe) == (2, {"bind_to": "none"}, True)
    # More workers than a node has cores: the runtime would refuse them.
    assert not space_of(wanted).is_valid(Setting.parse("variant=mate,workers=4"))


def test_layouts() -> None:
    assert Layout.of(8, {}) == Layout(8)
    assert Layout.of(8, {"workers": "4"}) == Layout(2, workers=4)
    assert Layout.of(8, {"processes": "2", "workers": "2"}) == Layout(2, workers=2)
    assert Layout.of(8, {"ranks": "3"}) == Layout(3)
    for given_, code, named in [
        ({"workers": "3"}, "layout.cores", "workers=3"),
        ({"processes": "4", "workers": "4"}, "layout.cores", "16"),
        ({"processes": "none"}, "layout.range", "processes=none"),
    ]:
        with refused(UsageError, code) as told:
            Layout.of(8, given_)
        assert named in str(told.value)


def test_a_space_without_room_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[parameters.workers]\nlevels = [1, 2, 3]\n")
    with refused(UsageError, "layout.cores"):
        require_room(load_space(str(path)), 4)
    path.write_text(path.read_text() + '[[constraints]]\nrule = "ranks % workers == 0"\n')
    require_room(load_space(str(path), facts={"ranks": 4}), 4)
    path.write_text("[parameters.processes]\nlevels = [1, 2, 8]\n")
    with refused(UsageError, "layout.cores"):
        require_room(load_space(str(path)), 4)
    require_room(space_of(target(12), "mate+openmpi"), 12)


def test_programs_that_do_not_understand_the_options_are_refused() -> None:
    space = space_of(target(2))
    require_tunable(app(), space.name, space.requires)
    assert "mate" in load_app("jacobi3d").tunable
    with refused(UsageError, "space.program_options") as error:
        require_tunable(load_app("micro"), space.name, space.requires)
    listed = str(error.value).partition("Applications that do: ")[2].partition(".")[0]
    assert {"cloverleaf3d", "jacobi3d"} <= set(listed.split(", "))
    assert 'tunable = ["mate"]' in str(error.value)


def test_inputs_of_jacobi3d_tell_their_cells() -> None:
    shipped = load_app("jacobi3d")
    for name, known in INPUTS.items():
        facts = shipped.input(name).facts
        assert tuple(facts[f"cells_{axis}"] for axis in "xyz") == known.size


def test_the_key_holds_the_cores_not_the_processes() -> None:
    wanted = target(4)
    space = space_of(wanted)
    key = study_key(wanted, space, "ga", {}, 0)
    assert key.ranks == 4
    assert key.space_hash == space.hash
    other = target(2)
    assert space_of(other).hash != space.hash


@pytest.mark.parametrize(
    ("bindings", "state"),
    [(["0-1", "2-3"], "in force"), (["0", "1"], "altered"), (["0-3", "0-3"], "altered")],
)
def test_a_binding_to_several_cores_is_read_back(
    bindings: list[str], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.placement.threads_per_core", lambda: 1)
    found = read_back_placement({"map_by": "slot:PE=2", "bind_to": "core"}, bindings)
    assert found["bind_to"].state == state


@pytest.mark.mpi
def test_it_is_shown_at_80_columns(
    library: Library, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show("mate", ranks=64)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "  processes = (ranks / workers)" in lines


@pytest.mark.mpi
def test_a_launch_has_its_cores_and_its_line_can_be_pasted(
    tmp_path: Path, open_mpi: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process with as many workers as there are cores, where Open MPI would bind it to one."""
    cores = describe_machine().cores
    if cores < 2:
        pytest.skip("one core: there is nothing to divide")
    (tmp_path / "show.py").write_text(SHOW)
    words = TargetRequest(app="jacobi3d", ranks=cores, timeout=30)
    wanted = find_target(words)
    shown = wanted.app.model_copy(
        update={"command": ("{python}", str(tmp_path / "show.py")), "metric": None, "verify": None}
    )
    wanted = Target(shown, None, cores, wanted.cluster, open_mpi, cores, timeout_s=30)
    space = wanted.space("openmpi+mate")
    setting = Setting.parse(f"variant=mate,workers={cores},odf=2")
    with Runner(adapter(open_mpi), guard=False) as runner:
        record = runner.run(wanted.spec(space, setting))
    assert (record.state, record.reason) == ("ok", "")
    assert record.world_size == 1
    assert record.read_back["bind_to"].state == "in force"
    expected = ["--variant", "mate", "--workers", str(cores), "--ranks-per-process", str(2 * cores)]
    assert record.extra["args"] == [*expected, "--local-grid", f"1x1x{2 * cores}"]
    assert len(record.extra["cpus"][0]) >= cores

    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("PATH", open_mpi.bin, prepend=":")
    line = wanted.mpirun_line(adapter(open_mpi), space, setting)
    assert shutil.which(shlex.split(line)[0])
    done = started(["sh", "-c", line], timeout=60)
    assert done.returncode == 0, done.stderr
    assert f'"--workers", "{cores}"' in done.stdout
