"""The command line of ``python -m runner.programs.nas``."""

from __future__ import annotations

import importlib
import importlib.util
from argparse import Namespace
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runner.programs.apps.common.errors import AppError, AppUsageError
from runner.programs.apps.common.options import OptionParser, positive

if TYPE_CHECKING:
    from runner.runtimes.mate import Config

WITH_THREADS = ("cg",)
"""The kernels that have OpenMP threads."""
ON_MATE = ("cg", "mg", "lu", "ft", "is")
"""The kernels that run on MATE, as the modules ``NAME_mate``."""
VARIANTS = ("mpi", "mate")

NAMES = ("is", "ep", "cg", "mg", "ft", "lu", "bt", "sp")


@dataclass(frozen=True)
class Options:
    """The options of one run.

    ``module`` is the kernel's module, ``problem`` its parameters of the class, ``help`` the text to
    print instead of running. ``openmp``: the threads of a rank share its work. ``config``: the
    runtime's configuration of the variant mate, whose module ``module`` then is; None for flat MPI.
    ``planes``: planes of LU's grid in a message.
    """

    kernel: str
    module: ModuleType | None
    problem_class: str
    problem: Any
    repetitions: int
    help: str | None
    openmp: bool = False
    config: Config | None = None
    planes: int = 1

    @property
    def split(self) -> int:
        """Pieces in which a message is sent."""
        return 1 if self.config is None else self.config.split


def build_parser(with_runtime: bool = False) -> OptionParser:
    """The parser; ``with_runtime``: also with the options of MATE, whose import takes time."""
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
    parser.add_argument("--variant", choices=VARIANTS, default="mpi",
        help=f"flat MPI, or over-decomposed on MATE ({', '.join(ON_MATE)})")  # fmt: skip
    parser.add_argument("--planes", type=positive, metavar="K",
        help="planes of a sweep in a message (lu on MATE; default 1)")  # fmt: skip
    if with_runtime:
        from runner.runtimes.mate import add_arguments

        add_arguments(parser)
    return parser


def thread_level(arguments: list[str]) -> str:
    """The thread level that MPI must be started with, as mpi4py names it.

    A wrong command line is reported once MPI runs.
    """
    if _names_runtime(arguments):
        try:
            config = parse(arguments).config
        except AppError:
            return "single"
        return "single" if config is None else config.thread_level
    return "funneled" if "--openmp" in arguments else "single"


def _names_runtime(arguments: list[str]) -> bool:
    """True if the command line may have options of the runtime."""
    return any(word.startswith(("--v", "--h", "-h")) for word in arguments)


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser(_names_runtime(arguments))
    options = parser.parse_args(arguments)
    if options.help:
        return Options("", None, "", None, 1, parser.format_help())
    module = _module(options.kernel)
    problems = module.PROBLEMS
    config = _config(options) if _names_runtime(arguments) else None
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
    if options.planes and (config is None or options.kernel != "lu"):
        raise AppUsageError(
            "--planes is for kernel lu with --variant mate; leave it out",
            code="app_option.not_applicable",
        )
    problem = problems[options.problem_class]
    return Options(
        options.kernel,
        importlib.import_module(f"runner.programs.nas.{options.kernel}_mate") if config else module,
        options.problem_class,
        problem,
        options.repetitions,
        None,
        options.openmp,
        config,
        options.planes or 1,
    )


def _config(options: Namespace) -> Config | None:
    """The runtime's configuration, None for flat MPI.

    Raises :class:`AppUsageError` for what does not apply.
    """
    from runner.programs.apps.common.mated import config_of

    config = config_of(options)
    if options.variant == "mpi":
        if config.ranks_per_process > 1:
            raise AppUsageError(
                "--workers and --ranks-per-process mean nothing to --variant mpi; leave them out",
                code="app_option.ranks",
            )
        return None
    if options.kernel not in ON_MATE:
        raise AppUsageError(
            f"--variant mate: kernel {options.kernel} has no such form; choose one of "
            f"{', '.join(ON_MATE)}",
            code="app_option.not_applicable",
        )
    if options.openmp:
        raise AppUsageError(
            "--openmp and --variant mate exclude each other: the ranks of a process share its "
            "cores; leave one of them out",
            code="app_option.conflict",
        )
    if config.rank_map is not None or config.local_grid is not None:
        raise AppUsageError(
            "--rank-map and --local-grid: the ranks of a kernel have their own places",
            code="app_option.not_applicable",
        )
    return config


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
