"""How a benchmark ends; nothing of the tuner is imported, so that it runs beside programs alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from runner.closed_output import drop_output


def run_benchmark(main: Callable[[], int | None]) -> NoReturn:
    """Run a benchmark and end the process with the exit code that ``main`` returns.

    If the reader of the output goes (``| head``), the benchmark ends quietly with 1: nobody has
    seen a verdict.
    """
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        code = 1
    sys.exit(code)
