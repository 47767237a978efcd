"""Small programs of the benchmarks: C programs compiled, any program started, one JSON line read.

Benchmarks of a whole study start their programs through the tuner. These here measure themselves
and are started as they are, with the launcher's options of the cluster "local" or of a testbed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from autotune.config.cluster import load_cluster
from autotune.errors import WorkError
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.supervise import ExecRequest, Supervisor
from runner.types import LaunchSpec

ROOT = Path(__file__).parents[1]
FLAGS = ("-O3", "-std=c11", "-Wall", "-ffp-contract=off", "-pthread")
"""No fused operations: every version computes the same bits."""
FASTEST = ("-O3", "-march=native", "-Wall")
"""As a user compiles for speed: a baseline must not be slow."""
TIMEOUT_S = 120.0


class NoCompiler(Exception):
    """A C program cannot be compiled here; the text says why."""


def compiled_for(
    library: Library,
    source: Path,
    place: Path,
    flags: Sequence[str] = FLAGS,
    more: Sequence[str] = (),
) -> Path:
    """A C program that uses this MPI library, in the directory ``place``.

    It is compiled by the library's mpicc or, if there is none, by cc with the library's header.
    ``more`` words come after the source: the libraries that it is linked with.
    Raises :class:`NoCompiler` if that is not possible.
    """
    own = Path(library.bin)
    # The adapter knows whether the library's own command works; else it names cc and the header.
    words = adapter(library).c_compiler()
    wrapper = next((word for word in words[:1] if Path(word).name.startswith("mpicc")), None)
    header, libraries = own.parent / "include", own.parent / "lib"
    program = place / source.stem
    if wrapper is not None:
        return _compile([wrapper, *flags], source, program, *more)
    if not (header / "mpi.h").is_file():
        raise NoCompiler(f"{library.family} {library.version} has neither mpicc nor mpi.h")
    linked = [f"-I{header}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    return _compile([_cc(), *flags, *linked], source, program, *more, "-lmpi")


def compiled_library(source: Path, place: Path) -> Path:
    """A C file without MPI as a shared library in ``place``; raises :class:`NoCompiler`."""
    return _compile([_cc(), *FLAGS, "-fPIC", "-shared"], source, place / f"{source.stem}.so")


def _cc() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise NoCompiler("no compiler")
    return found


def _compile(words: list[str], source: Path, result: Path, *more: str) -> Path:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        raise NoCompiler("no compiler")
    line = [*words, "-o", str(result), str(source), *more]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoCompiler(f"{words[0]} cannot compile {source.name}: {said[-1] if said else ''}")
    return result


class Programs:
    """Starts programs one after the other, without and with MPI; a context manager.

    They and their processes end with it, and by Ctrl-C.
    """

    def __init__(self, library: Library, cluster: str = "local") -> None:
        self.library = library
        self._adapter = adapter(library)
        definition = load_cluster(cluster)
        self._options = definition.options(library)
        self._on_testbed = definition.testbed is not None
        self._supervisor = Supervisor()

    def __enter__(self) -> Programs:
        self._supervisor.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._supervisor.__exit__(kind, error, trace)

    def mpi(self, words: Sequence[str], processes: int) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command line and environment that start a program as MPI processes on this machine.

        One process may use all cores. Several have a core each, or share all cores if there are
        too few. On a testbed they are dealt out to its nodes and have their node's cores.
        """
        crowded = processes > len(os.sched_getaffinity(0))
        bound = "none" if processes == 1 or crowded else "core"
        spec = LaunchSpec(
            program=tuple(words),
            ranks=processes,
            placement={"map_by": "node"} if self._on_testbed else {"bind_to": bound},
            launch_options=self._options,
            oversubscribe=crowded,
            read_back=False,
        )
        environment = {**os.environ, **_paths()}
        line = self._adapter.command(spec, Path())
        return tuple(line), self._adapter.environment(spec, environment)

    def run(
        self, words: Sequence[str], processes: int | None = None
    ) -> tuple[dict[str, Any], float]:
        """The last JSON line of a program, and its wall time in seconds.

        ``processes=None`` starts it without the launcher. Raises :class:`WorkError` with the
        program's last words if it fails.
        """
        if processes is None:
            line, environment = tuple(words), {**os.environ, **_paths()}
        else:
            line, environment = self.mpi(words, processes)
        result = self._supervisor.run(
            ExecRequest(argv=line, env=environment, cwd=str(ROOT), timeout_s=TIMEOUT_S)
        )
        if result.exit_code or result.json_line is None:
            said = "\n".join(result.stderr.strip().splitlines()[-5:])
            ended = "ran too long" if result.timed_out else f"exit code {result.exit_code}"
            raise WorkError(
                f"{' '.join(line)}: {ended}; expected a line of figures\n{said}",
                code="benchmark.fails",
            )
        return result.json_line, result.wall_s


def _paths() -> dict[str, str]:
    """Programs import these benchmarks and the runner from this copy."""
    given = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *([given] if given else [])])}


def python(module: str, *words: str) -> list[str]:
    """The words that start a module under this Python."""
    return [sys.executable, "-m", module, *words]


def quartiles(samples: Sequence[float]) -> dict[str, float]:
    """Minimum, quartiles and median; each is one of the samples, so infinities are possible."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    names = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75}
    return {name: ordered[round(share * last)] for name, share in names.items()}
