"""The command line of ``python -m runner.nas``."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from runner.apps.common_errors import AppUsageError
from runner.apps.common_options import OptionParser, positive

NAMES = ("is", "ep", "cg", "mg", "ft", "lu", "bt", "sp")


@dataclass(frozen=True)
class Options:
    """The options of one run.

    ``module`` is the kernel's module, ``problem`` its parameters of the class, ``help`` the text to
    print instead of running.
    """

    kernel: str
    module: ModuleType | None
    problem_class: str
    problem: Any
    repetitions: int
    help: str | None


def build_parser() -> OptionParser:
    parser = OptionParser("python -m runner.nas", "NAS-style kernels (NPB 3.4, MPI).")
    parser.add_argument(
        "kernel", nargs="?", metavar="KERNEL", help=f"one of: {', '.join(_known())}"
    )
    parser.add_argument("--class", dest="problem_class", default="S", metavar="CLASS",
        help="problem class S, W, A or B (default S)")  # fmt: skip
    parser.add_argument("--repetitions", type=positive, default=1, metavar="K",
        help="run the timed part K times; the median counts")  # fmt: skip
    return parser


def parse(arguments: list[str]) -> Options:
    """The options; raises :class:`AppUsageError`."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    if given.help:
        return Options("", None, "", None, 1, parser.format_help())
    module = _module(given.kernel)
    problems = module.PROBLEMS
    if given.problem_class not in problems:
        raise AppUsageError(
            f"--class {given.problem_class} is unknown to nas {given.kernel}; "
            f"there are {', '.join(problems)}"
        )
    problem = problems[given.problem_class]
    return Options(given.kernel, module, given.problem_class, problem, given.repetitions, help=None)


def _module(kernel: str | None) -> ModuleType:
    known = _known()
    if kernel is None:
        raise AppUsageError(f"no kernel is named; expected one of {', '.join(known)}")
    if kernel not in known:
        raise AppUsageError(f"kernel {kernel} is unknown; there are {', '.join(known)}")
    return importlib.import_module(f"runner.nas.{kernel}")


def _known() -> list[str]:
    return [name for name in NAMES if importlib.util.find_spec(f"runner.nas.{name}")]
