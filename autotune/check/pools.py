"""Pools of threads: the run-time libraries that start threads, and how many they start."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath

from autotune.targets.wrapped_launcher import split_wrappers
from runner.cpus import parse_cpus
from runner.mpi.abi import is_elf
from runner.mpi.output import output_of

_FILES = {
    "openblas": re.compile(r"/lib[^/\s]*openblas[^/\s]*\.so"),
    "mkl": re.compile(r"/libmkl_(?:intel|gnu|tbb)_thread|/libmkl_rt"),
    "blis": re.compile(r"/libblis[^/\s]*\.so"),
    "gomp": re.compile(r"/libgomp[^/\s]*\.so"),
    "iomp": re.compile(r"/lib(?:iomp5|omp)[^/\s]*\.so"),
}
"""The file of each library, in a list of mapped files or in what the loader prints."""
_SIZES = {
    "openblas": ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
}
"""The variables that set the size of a pool which a library of BLAS makes when it is loaded."""
BLAS = frozenset(_SIZES)
"""The libraries of BLAS."""


def pools_in(text: str) -> frozenset[str]:
    """The libraries whose files are named in a text."""
    return frozenset(name for name, pattern in _FILES.items() if pattern.search(text))


def pools_of_program(words: Sequence[str]) -> frozenset[str] | None:
    """The libraries that the loader finds for a binary; None for a script, which may load any."""
    _, program = split_wrappers(words)
    path = shutil.which(program[0]) if program else None
    if path is None or not is_elf(path) or "python" in PurePath(path).name:
        return None
    return pools_in(output_of(("ldd", path), whatever_code=True))


def expected_threads(
    pools: frozenset[str] | None, environment: Mapping[str, str], cpus: int
) -> int:
    """Threads of a rank on so many CPUs, as its libraries and variables say.

    ``pools`` is None for a script: it has as many threads as OMP_NUM_THREADS says, if it does.
    """
    kinds = frozenset({"gomp"}) if pools is None else pools
    return max((pool_size(pool, environment, cpus) for pool in kinds), default=1)


def pinned_threads(
    environment: Mapping[str, str], cpus: frozenset[int], number: int
) -> tuple[frozenset[int], ...]:
    """The CPUs of each thread of OpenMP in a rank on ``cpus``, one core after the other if pinned.

    A list of CPUs (GOMP_CPU_AFFINITY) is absolute; other variables count within the rank.
    """
    listed = environment.get("GOMP_CPU_AFFINITY", "").replace(" ", ",").strip(",")
    binding = environment.get("OMP_PROC_BIND", "").lower().partition(",")[0]
    places: list[frozenset[int]] = []
    with suppress(ValueError):
        places = [frozenset({cpu}) for cpu in sorted(parse_cpus(listed))] if listed else []
    if not places and binding in ("true", "close", "spread", "master", "primary"):
        places = [frozenset({cpu}) for cpu in sorted(cpus)]
    if not places:
        return (cpus,) * number
    step = max(1, len(places) // number) if binding == "spread" else 1
    return tuple(places[thread * step % len(places)] for thread in range(number))


PINNING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
"""Variables by which run-time libraries of OpenMP pin threads, the main one included."""


def pool_size(pool: str, environment: Mapping[str, str], cpus: int) -> int:
    """Threads of a pool: as many as a variable says, else one for each CPU of the rank.

    Run-time libraries of OpenMP start a team only when the program needs one: 1, unless
    OMP_NUM_THREADS says that it does.
    """
    variables = _SIZES.get(pool, ("OMP_NUM_THREADS",))
    numbers = (environment.get(name, "").partition(",")[0] for name in variables)
    return next((int(text) for text in numbers if text.isdecimal()), cpus if pool in _SIZES else 1)
