"""The contract of MPI library adapters: discovery, launches, read-back, refusals, time limits."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from runner.errors import RunnerUsageError
from runner.launch import Runner
from runner.mpi.base import Adapter
from runner.mpi.discover import (
    adapter,
    families,
    family,
    find_library,
    identify,
    identify_environment,
)
from runner.mpi.library import Library
from runner.own_python import OWN_PYTHON
from runner.types import LIBRARY, LaunchSpec, RunRecord

TIMEOUT_S = 60.0
LIMITS_S = (2.0, 6.0, 20.0)
"""Time limits in seconds to try until the ranks have started within one."""
UNKNOWN = "no_such_parameter_of_any_library"
PROGRAM = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
text = sys.stdin.read() if "input" in sys.argv else ""
said = f"rank {world.rank} of {world.size} {os.environ.get('AUTOTUNE_CONTRACT', '-')} {text!r}"
for line in world.gather(said) or ():
    print(line, flush=True)
"""
SLEEPER = """
import os, sys, time
from mpi4py import MPI
open(f"{sys.argv[1]}/{MPI.COMM_WORLD.rank}", "w").write(str(os.getpid()))
time.sleep(600)
"""
_LINE = re.compile(r"rank (\d+) of (\d+) (\S+) (.*)")


@dataclass(frozen=True)
class ParameterFile:
    """How a launch loads a parameter file: variables for the launcher, and command-line arguments.

    ``dies``: the file holds a value that stops the launch, because nothing can be read back.
    """

    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    dies: bool = False


class MpiLibraryContract:
    """Real launches with the adapter of one library.

    A subclass defines the fixture ``library`` (:func:`runner.mpi.discover.find_library`), or
    ``wanted``, and the attributes below. The ranks are Python with mpi4py, which must be able to
    load the library: by itself, or with :meth:`~runner.mpi.base.Adapter.python_variables`.
    """

    wanted: ClassVar[str | None] = None
    """The library as ``--mpi`` names it."""
    parameter: ClassVar[tuple[str, str]]
    """One of the library's own parameters, and a valid value that is not its default."""
    wrong_value: ClassVar[str] = "autotune-canary"
    """A value of ``parameter`` that stops the launch if the adapter says ``checks_values``."""
    launch_options: ClassVar[tuple[str, ...]] = ()
    """Arguments that every launch needs here, as in a cluster definition."""
    wrong_options: ClassVar[tuple[str, ...]] = ("--no-such-option-of-a-launcher",)
    """Arguments that the launcher refuses."""

    def parameter_file(self, place: Path) -> ParameterFile | None:
        """Write a file below ``place`` that sets ``parameter``; None if no such file is read."""
        return None

    # Fixtures.

    @pytest.fixture
    def library(self) -> Library:
        """The library, with its parameters."""
        return find_library(self.wanted)

    @pytest.fixture
    def launcher(self, library: Library) -> Adapter:
        """The adapter of the library."""
        return adapter(library)

    @pytest.fixture
    def runner(self, launcher: Adapter) -> Iterator[Runner]:
        """The runner; without the guard, because no run is timed."""
        with Runner(launcher, guard=False) as open_runner:
            yield open_runner

    def spec(self, launcher: Adapter, ranks: int = 2, *words: str, **more: Any) -> LaunchSpec:
        """A launch of a small program whose ranks print their identity."""
        env = launcher.python_variables(os.environ) | more.pop("env", {})
        return LaunchSpec(
            program=(*OWN_PYTHON, "-c", more.pop("program", PROGRAM), *words),
            ranks=ranks,
            env=env,
            launch_options=(*self.launch_options, *more.pop("launch_options", ())),
            oversubscribe=ranks > len(os.sched_getaffinity(0)),
            timeout_s=more.pop("timeout_s", TIMEOUT_S),
            **more,
        )

    @staticmethod
    def rank_reports(record: RunRecord) -> dict[int, tuple[int, str, str]]:
        """For each rank the size of its world, its variable and its input; of a valid run."""
        assert record.state == "ok", f"{record.reason}\n{record.stderr_tail}"
        lines = _LINE.findall(record.stdout_tail)
        return {int(rank): (int(size), value, text) for rank, size, value, text in lines}

    # Discovery, version, parameters.

    def test_its_family_is_registered_under_its_name(self, launcher: Adapter) -> None:
        kind = type(launcher)
        assert families()[launcher.library.family] is kind is family(kind.family)
        assert re.fullmatch(r"[a-z]+", kind.family)
        assert kind.title
        assert LIBRARY in kind.kinds
        assert kind.rank_variables, "rank 0 is known by them where it has an input"

    def test_it_is_found_by_its_launcher(self, library: Library) -> None:
        identified_library = find_library(library.launcher)
        assert (identified_library.family, identified_library.version) == (
            library.family,
            library.version,
        )
        assert identify(Path(library.launcher)) == replace(library, params={})

    def test_only_its_own_adapter_tells_its_version(self, library: Library) -> None:
        assert library.version_tuple, library.version
        env = identify_environment(Path(library.launcher))
        process = subprocess.run(
            [library.launcher, "--version"],
            env=env,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        versions = {
            name: kind.version_in(process.stdout + process.stderr)
            for name, kind in families().items()
        }
        assert {n for n, version in versions.items() if version is not None} == {library.family}
        assert versions[library.family] == library.version
        assert family(library.family).version_in("mpirun (Another MPI) 9.9") is None

    def test_its_parameters_are_listed_or_none(self, library: Library) -> None:
        name, value = self.parameter
        for key, info in library.params.items():
            assert info.name == key
            assert info.type
        assert not library.params or name in library.params, (
            f"parameter names {name}, which {library.family} {library.version} does not list"
        )
        if name in library.params:
            assert library.params[name].default != value, "give a value that is not the default"

    # Launches.

    @pytest.mark.parametrize("ranks", [1, 3])
    def test_all_ranks_are_one_world(self, launcher: Adapter, runner: Runner, ranks: int) -> None:
        record = runner.run(self.spec(launcher, ranks))
        reports = self.rank_reports(record)
        assert {rank: size for rank, (size, _, _) in reports.items()} == dict.fromkeys(
            range(ranks), ranks
        )
        assert record.world_size in (None, ranks)
        assert (record.mpi_name, record.mpi_version) == (
            launcher.library.family,
            launcher.library.version,
        )

    def test_variables_of_a_setting_are_read_back(self, launcher: Adapter, runner: Runner) -> None:
        values = {"AUTOTUNE_CONTRACT": "by-launch", "AUTOTUNE_LIST": "{0:2},{4}:;^a=1"}
        spec = self.spec(launcher, variables=values)
        record = runner.run(spec)
        assert {value for _, value, _ in self.rank_reports(record).values()} == {"by-launch"}
        for name, value in values.items():
            back = record.read_back[name]
            assert (back.state, back.effective) == ("in force", value)

    def test_variables_reach_the_ranks(self, launcher: Adapter, runner: Runner) -> None:
        by_launch = self.spec(launcher, env={"AUTOTUNE_CONTRACT": "by-launch"})
        words = launcher.rank_environment({"AUTOTUNE_CONTRACT": "by-words"})
        by_words = self.spec(launcher, launch_options=tuple(words))
        assert {value for _, value, _ in self.rank_reports(runner.run(by_launch)).values()} == {
            "by-launch"
        }
        assert {value for _, value, _ in self.rank_reports(runner.run(by_words)).values()} == {
            "by-words"
        }

    def test_rank_0_alone_reads_the_input(
        self, launcher: Adapter, runner: Runner, tmp_path: Path
    ) -> None:
        (tmp_path / "in.txt").write_text("some words", encoding="utf-8")
        spec = self.spec(launcher, 2, "input", stdin=str(tmp_path / "in.txt"))
        reports = self.rank_reports(runner.run(spec))
        assert [text for _, _, text in (reports[0], reports[1])] == ["'some words'", "''"]

    def test_a_parameter_is_in_force_or_said_not_to_be_observable(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        name, value = self.parameter
        spec = self.spec(launcher, parameters={LIBRARY: {name: value}})
        assert {name, value} <= set(launcher.command(spec, Path()))
        record = runner.run(spec)
        self.rank_reports(record)
        back = record.read_back[name]
        assert back.state == ("in force" if launcher.reads_back else "not observable")
        assert back.requested == value

    def test_an_unknown_parameter_is_never_in_force(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        record = runner.run(self.spec(launcher, parameters={LIBRARY: {UNKNOWN: "1"}}))
        back = record.read_back[UNKNOWN]
        if launcher.reads_back:
            assert (back.state, record.state) == ("unknown", "not_read_back")
        else:
            assert back.state == "not observable"

    def test_a_wrong_value_fails_where_the_library_checks_values(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        if not (launcher.checks_values or launcher.reads_back):
            return  # Then no setting can be proven, and every run says so.
        name, _ = self.parameter
        record = runner.run(self.spec(launcher, parameters={LIBRARY: {name: self.wrong_value}}))
        assert record.state in ("failed", "launch_error", "no_mpi", "not_read_back")

    def test_refuses_kinds_that_it_does_not_have(self, launcher: Adapter, runner: Runner) -> None:
        with pytest.raises(RunnerUsageError, match="of the kind 'nonsense'"):
            runner.run(self.spec(launcher, parameters={"nonsense": {"a": "1"}}))

    def test_lists_and_removes_settings_of_the_environment(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        name, value = self.parameter
        variables = launcher.variables({LIBRARY: {name: value}}, {})
        assert list(variables.values()) == [value]
        settings = launcher.inherited_settings({"HOME": "/nonexistent", **variables})
        assert variables.items() <= settings.items()
        spec = self.spec(launcher)
        assert variables.items() <= launcher.environment(spec, variables).items()
        clean = launcher.environment(replace(spec, clean_env=True), variables)
        assert not set(variables) & set(clean)
        record = runner.run(self.spec(launcher, env=variables, expected={name: value}))
        self.rank_reports(record)
        if launcher.reads_back:
            assert record.read_back[name].state == "in force"
        values_in_force = launcher.values_in_force({**os.environ, **variables})
        assert not values_in_force or values_in_force[name] in (value, "")

    def test_placement_is_said_and_seen(self, launcher: Adapter, runner: Runner) -> None:
        assert launcher.placement_names <= {"map_by", "bind_to", "rank_by"}
        for name in launcher.placement_names:
            assert "core" in launcher.placement_words({name: "core"}, False)
        cores = len(os.sched_getaffinity(0))
        if "bind_to" not in launcher.placement_names or cores < 2:
            return
        free = runner.run(self.spec(launcher, placement={"bind_to": "none"}))
        bound = runner.run(self.spec(launcher, placement={"bind_to": "core"}))
        self.rank_reports(free)
        self.rank_reports(bound)
        assert len(set(free.bindings)) == 1
        assert len(set(bound.bindings)) == 2

    def test_shares_cores_among_workers_or_leaves_them(self, launcher: Adapter) -> None:
        assert launcher.share_cores({}, 1) == {}
        assert launcher.share_cores({"bind_to": "none"}, 2) == {"bind_to": "none"}
        assert set(launcher.share_cores({}, 2)) <= launcher.placement_names

    # A file with parameters.

    def test_a_parameter_file_is_in_force(
        self, launcher: Adapter, runner: Runner, tmp_path: Path
    ) -> None:
        """The value is read back, or a file with a wrong value stops the launch."""
        file = self.parameter_file(tmp_path)
        if file is None:
            assert not launcher.tune_option, (
                f"launches load files by {launcher.tune_option}: override parameter_file"
            )
            return
        name, value = self.parameter
        expected_values = {name: value} if launcher.reads_back else {}
        record = runner.run(
            self.spec(launcher, env=file.env, launch_options=file.options, expected=expected_values)
        )
        if file.dies:
            assert record.state in ("failed", "launch_error", "no_mpi")
            assert runner.run(self.spec(launcher)).valid
        else:
            self.rank_reports(record)
            assert record.read_back[name].state == "in force"
            assert record.read_back[name].source not in (None, "default")

    # Failures.

    def test_a_launcher_that_refuses_is_told_from_a_program_that_fails(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        refusal = runner.run(self.spec(launcher, launch_options=self.wrong_options))
        assert refusal.state == "launch_error", refusal.stderr_tail
        spec = self.spec(launcher)
        missing = runner.run(replace(spec, program=("/nonexistent/program",)))
        assert missing.state == "launch_error", missing.stderr_tail
        failure = runner.run(self.spec(launcher, program=PROGRAM + "\nsys.exit(3)\n"))
        assert failure.state == "failed", failure.reason

    def test_a_program_without_mpi_is_told_where_it_can_be(
        self, launcher: Adapter, runner: Runner
    ) -> None:
        record = runner.run(replace(self.spec(launcher), program=("/bin/true",)))
        assert record.state == ("no_mpi" if launcher.reads_back else "ok")

    def test_the_time_limit_ends_every_rank(
        self, launcher: Adapter, runner: Runner, tmp_path: Path
    ) -> None:
        for limit_s in LIMITS_S:
            place = tmp_path / f"{limit_s}"
            place.mkdir()
            spec = self.spec(launcher, 2, str(place), program=SLEEPER, timeout_s=limit_s)
            record = runner.run(spec)
            assert record.state == "timeout", f"{record.reason}\n{record.stderr_tail}"
            pids = [int(file.read_text(encoding="utf-8")) for file in place.iterdir()]
            if len(pids) == 2:
                break
        assert len(pids) == 2, f"no two ranks within {limit_s:g} s"
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < deadline, "ranks are left behind"
            time.sleep(0.1)
