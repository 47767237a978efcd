"""The command line of ``python -m runner.programs.nas``."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, positive

WITH_THREADS = ("cg",)
"""The kernels that have OpenMP threads."""

NAMES = ("is", "ep", "cg", "mg", "ft", "lu", "bt", "sp")


@dataclass(frozen=True)
class Options:
    """The options of one run.

    ``module`` is the kernel's module, ``problem`` its parameters of the class, ``help`` the text to
    print instead of running. ``openmp``: the threads of a rank share its work.
    """

    kernel: str
    module: ModuleType | None
    problem_class: str
    problem: Any
    repetitions: int
    help: str | None
    openmp: bool = False


def build_parser() -> OptionParser:
    parser = OptionParser("python -m runner.programs.nas", "NAS-style kernels (NPB 3.4, MPI).")
    parser.add_argument(
        "kernel", nargs="?", metavar="KERNEL", help=f"one of: {', '.join(_kernel_names())}"
    )
    parser.add_argument("--class", dest="problem_class", default="S", metavar="CLASS",
        help="problem class S, W, A or B (default S)")  # fmt: skip
    parser.add_argument("--repetitions", type=positive, default=1, metavar="K",
        help="run the timed part K times; the median counts")  # fmt: skip
    able = ", ".join(WITH_THREADS)
    parser.add_argument("--openmp", action="store_true",
        help=f"OMP_NUM_THREADS threads share the work of a rank ({able})")  # fmt: skip
    return parser


def thread_level(arguments: list[str]) -> str:
    """The thread level that MPI must be started with, as mpi4py names it."""
    return "funneled" if "--openmp" in arguments else "single"


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.help:
        return Options("", None, "", None, 1, parser.format_help())
    module = _module(options.kernel)
    problems = module.PROBLEMS
    if options.problem_class not in problems:
        raise AppUsageError(
            f"--class {options.problem_class} is unknown to nas {options.kernel}; "
            f"there are {', '.join(problems)}",
            code="app_option.unknown",
        )
    if options.openmp and options.kernel not in WITH_THREADS:
        raise AppUsageError(
            f"--openmp: kernel {options.kernel} has no threads; leave it out, or choose one of "
            f"{', '.join(WITH_THREADS)}",
            code="app_option.not_applicable",
        )
    problem = problems[options.problem_class]
    return Options(
        options.kernel,
        module,
        options.problem_class,
        problem,
        options.repetitions,
        None,
        options.openmp,
    )


def _module(kernel: str | None) -> ModuleType:
    names = _kernel_names()
    if kernel is None:
        raise AppUsageError(
            f"no kernel is named; expected one of {', '.join(names)}", code="app_option.unknown"
        )
    if kernel not in names:
        raise AppUsageError(
            f"kernel {kernel} is unknown; there are {', '.join(names)}", code="app_option.unknown"
        )
    return importlib.import_module(f"runner.programs.nas.{kernel}")


def _kernel_names() -> list[str]:
    return [name for name in NAMES if importlib.util.find_spec(f"runner.programs.nas.{name}")]
