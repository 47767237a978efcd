"""srun as a launcher: command lines, variables, and what its ranks report; no Slurm is needed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.config.cluster import load_cluster
from autotune.config.launcher import options_for
from autotune.publish.content import Content
from autotune.publish.formats import find
from autotune.space import load_space
from autotune.targets.launcher_line import parse_launcher_line
from runner.errors import RunnerError
from runner.launch import Runner
from runner.mpi.base import REPORTED_FILE
from runner.mpi.discover import adapter
from runner.mpi.library import Library, ParamInfo
from runner.mpi.rank_layout import Topology
from runner.mpi.srun import PLACEMENT, SrunLaunch, placement_variables
from runner.placement import read_back_placement
from runner.rank_report import boot_id, cpu_s_here, rank_reports, with_rank_report
from runner.types import LaunchSpec
from tests.refusals import refused

EAGER = {"btl_sm_eager_limit": ParamInfo("btl_sm_eager_limit", "int", "4096")}
OPEN_MPI = Library("openmpi", "5.0.11", "/opt/mpi/bin", "/usr/bin/srun", EAGER)
MPICH = Library("mpich", "5.0.2", "/opt/mpich/bin", "/usr/bin/srun")
BARE = LaunchSpec(("./a.out", "1"), 4, read_back=False)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SRUN_"))]:
        monkeypatch.delenv(name)


def test_a_command_line() -> None:
    spec = replace(
        BARE,
        parameters={"mca": {"btl_sm_eager_limit": "8192"}},
        placement={"cpu_bind": "cores", "distribution": "cyclic:block", "exact": "yes"},
        variables={"OMP_NUM_THREADS": "2"},
        launch_options=("--mca", "btl", "^ofi,tcp", "--nodes", "2", "--export", "ALL,A=1,2"),
    )
    assert adapter(OPEN_MPI).command(spec, Path()) == [
        *("env", "OMPI_MCA_btl=^ofi,tcp", "A=1,2", "OMPI_MCA_btl_sm_eager_limit=8192"),
        *("OMP_NUM_THREADS=2", "/usr/bin/srun", "-n", "4", "--nodes", "2"),
        *("--cpu-bind", "cores", "--distribution", "cyclic:block", "--exact", "./a.out", "1"),
    ]
    spec = replace(BARE, parameters={"mca": {"MPIR_CVAR_X": "1"}}, oversubscribe=True)
    words = adapter(MPICH).command(spec, Path())
    assert words[:3] == ["env", "MPIR_CVAR_X=1", "/usr/bin/srun"]
    assert "--overcommit" in words
    assert adapter(MPICH).command(BARE, Path())[0] == "/usr/bin/srun"


def test_a_step_has_a_name_a_limit_and_reports(tmp_path: Path) -> None:
    spec = replace(BARE, read_back=True, timeout_s=61.0)
    words = adapter(OPEN_MPI).command(spec, tmp_path)
    assert words[words.index("--job-name") + 1].endswith(tmp_path.name)
    assert words[words.index("--time") + 1] == "3"
    assert "OMPI_MCA_mpi_show_mca_params=all" in words
    assert words.index("--kill-on-bad-exit=1") < words.index("/bin/sh")


def test_what_is_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = adapter(OPEN_MPI)
    with refused(RunnerError, "srun.no_job"), Runner(launcher):
        pass
    with refused(RunnerError, "srun.cpus"):
        launcher.confine(BARE, frozenset({0}))
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    launcher.require()
    assert adapter(Library("openmpi", "5.0.11", "/b", "/b/mpirun")).placement_names.isdisjoint(
        launcher.placement_names
    )


def test_variables_are_those_that_srun_reads() -> None:
    placement = {name: "yes" if name in ("exact", "overlap") else "x" for name in PLACEMENT}
    variables = placement_variables(placement)
    assert set(variables) == {
        *("SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_HINT", "SRUN_CPUS_PER_TASK"),
        *("SLURM_MPI_TYPE", "SLURM_EXACT", "SLURM_OVERLAP"),
    }
    launcher = adapter(OPEN_MPI)
    assert {n: v for n, (v, _) in launcher.placement_in(variables).items()}.keys() == set(PLACEMENT)
    assert launcher.inherited_settings(dict(variables)).keys() >= set(variables)
    clean = launcher.environment(replace(BARE, clean_env=True), {"HOME": "/h", **variables})
    assert clean["HOME"] == "/h"
    assert clean.keys().isdisjoint(variables)


def test_the_space_of_a_study_has_options_of_srun_only() -> None:
    space = load_space(load_cluster("local").space(OPEN_MPI), OPEN_MPI, {"ranks": 4, "nodes": 2})
    assert {"cpu_bind", "distribution", "btl_sm_eager_limit"} <= set(space.names)
    assert {"map_by", "bind_to", "rank_by"} <= set(space.absent)
    own = replace(OPEN_MPI, launcher="/opt/mpi/bin/mpirun")
    assert "cpu_bind" in load_space("srun", own).absent


@pytest.mark.parametrize("library", [OPEN_MPI, replace(OPEN_MPI, launcher="/opt/mpi/bin/mpirun")])
def test_a_published_file_is_the_same_inside_a_job_and_outside(library: Library) -> None:
    content = Content(
        {
            "mca": {"btl_sm_eager_limit": "8192"},
            "placement": {"cpu_bind": "none", "mpi_type": "pmix"},
        }
    )
    script = find("slurm")
    assert script.part(content, library).names == content.names
    body = script.body(content, library)
    assert "export SLURM_CPU_BIND='none'\nexport SLURM_MPI_TYPE='pmix'\n" in body
    assert {name for _, name in find("openmpi-user").part(content, library).names} == {
        "btl_sm_eager_limit"
    }
    assert not find("prte-user").part(content, library).names


def test_a_line_of_srun_keeps_its_options_in_a_job() -> None:
    words = "srun -N 2 -n 4 -c 2 --cpu-bind=cores -m cyclic --mpi=pmix --overlap -p debug ./a"
    line = parse_launcher_line(tuple(words.split()), library=OPEN_MPI)
    assert line.placement == {
        "cpu_bind": "cores", "distribution": "cyclic", "mpi_type": "pmix", "overlap": "yes",
    }  # fmt: skip
    assert (line.options, line.cores_each, line.left_out) == (("-N", "2"), 2, ("-p debug",))
    assert adapter(OPEN_MPI).share_cores({}, 2) == {"cpus_per_task": "2"}
    outside = parse_launcher_line(("srun", "-n", "4", "--cpu-bind=cores", "./a"))
    assert outside.placement == {"bind_to": "core"}
    assert len(options_for("srun", OPEN_MPI)) == 1


def reports(cpus: tuple[str, ...], distribution: str = "block") -> list[str]:
    return [
        f"autotune-rank {rank} n{rank} {text} {boot_id()} 300 77 50 2 pmix {distribution} end"
        for rank, text in enumerate(cpus)
    ]


def test_masks_plugin_and_time_are_read_back(tmp_path: Path) -> None:
    lines = reports(("0-1", "2-3"))
    assert cpu_s_here(lines) == pytest.approx((2 * 300 + 50) / 2 / os.sysconf("SC_CLK_TCK"))
    assert cpu_s_here([line.replace(boot_id(), "0" * 36) for line in lines]) == 0
    placement = {"cpu_bind": "cores", "distribution": "cyclic", "mpi_type": "pmix",
                 "cpus_per_task": "2"}  # fmt: skip
    spec = replace(BARE, ranks=2, placement=placement, read_back=True)
    (tmp_path / REPORTED_FILE).write_text("\n".join(lines))
    probe = adapter(OPEN_MPI).probe(spec, tmp_path)
    assert probe.bindings == ("0-1", "2-3")
    states = {name: probe.read_back[name].state for name in placement if name != "cpu_bind"}
    assert states == {
        "distribution": "altered", "mpi_type": "in force", "cpus_per_task": "in force",
    }  # fmt: skip
    assert read_back_placement(placement, ["0-1", "2-3"])["cpu_bind"].state == "in force"
    assert read_back_placement(placement, ["0-3", "0-3"])["cpu_bind"].state == "altered"
    (tmp_path / REPORTED_FILE).write_text(lines[0])
    assert adapter(OPEN_MPI).probe(spec, tmp_path).bindings == ()


def test_the_time_that_a_rank_reports_is_what_the_kernel_counts() -> None:
    """In whole clock ticks each number would be half a tick too small, in the mean."""
    words = with_rank_report(("/bin/sh", "-c", "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"))
    environment = os.environ | {"SLURM_PROCID": "0", "SLURMD_NODENAME": "n0"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (report,) = rank_reports(done.stderr.splitlines()).values()
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ticks = (report.cpu_s - used_s) * os.sysconf("SC_CLK_TCK")
    assert -2 <= ticks <= 2
    assert report.cpu_s > 0


def test_a_layout_is_that_of_a_step_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = adapter(MPICH)
    assert isinstance(launcher, SrunLaunch)
    assert launcher.layout_query(BARE) is None
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_MPI_TYPE", "pmi2")
    query = launcher.layout_query(BARE)
    assert query is not None
    assert query.words[:2] == ["/usr/bin/srun", "--overlap"]
    assert query.words[-1] == "true"
    spec, topology = replace(BARE, ranks=2), Topology(4)
    layout = launcher.layout_in("\n".join(reports(("0", "1"))), spec, topology)
    assert layout == ("n0: 0", "n1: 1")
    assert launcher.layout_in(reports(("0",))[0], spec, topology) is None


def test_a_rank_reports_whatever_its_end() -> None:
    """Exit codes and signals of the program are those of the shell above it."""
    environment = {**os.environ, "SLURM_PROCID": "3", "SLURMD_NODENAME": "n1"}

    def run(script: str) -> subprocess.CompletedProcess[str]:
        words = with_rank_report(("sh", "-c", script))
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    done = run("echo out; exit 3")
    (report,) = rank_reports(done.stderr.splitlines()).values()
    assert (done.returncode, done.stdout, report.node, report.boot) == (3, "out\n", "n1", boot_id())
    assert report.daemon == os.getpid()
    assert run("kill -SEGV $$").returncode == -signal.SIGSEGV
    assert run("exit 200").returncode == 200
    assert not rank_reports(["autotune-rank 1 n 0", f"autotune-rank x {done.stderr}"[:60]])
