"""Runs a user's benchmark and prints its figure in seconds, as one line of JSON.

``mpirun -n RANKS python -m runner.programs.micro.brought --figure RE --us-of CALLS -- PROGRAM
ARGS``

OSU and IMB print microseconds per call or MB/s, and HPCG writes a rating into a file. A tuner needs
seconds, where smaller is better. Every rank starts the program as its child. The child has the
launcher's environment, binding and process group, as if the launcher had started it. The rank whose
program printed the figure (they all print on rank 0) adds the line of JSON.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runner.figure.number import CutNumber, number_at
from runner.files.closed_output import drop_output
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.options import OptionParser, above_zero, positive
from runner.programs.apps.common.report import json_line


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.programs.micro.brought",
        "Run another benchmark and convert its figure to seconds.",
    )
    parser.add_argument(
        "--figure",
        metavar="RE",
        help="regular expression for the figure in its output, with one group",
    )
    parser.add_argument("--us-of", type=positive, metavar="CALLS",
        help="the figure is in us per call; seconds = the time of this many calls")  # fmt: skip
    parser.add_argument("--rate-of", type=above_zero, metavar="WORK",
        help="the figure is a rate; seconds = the time of this much work at that rate")  # fmt: skip
    parser.add_argument(
        "--valid", metavar="RE", help="regular expression that the output of a correct run contains"
    )
    parser.add_argument(
        "--invalid",
        metavar="RE",
        help="regular expression that only the output of a wrong run contains",
    )
    parser.add_argument("--files", metavar="GLOB",
        help="output file to read too; the program then has a directory of its own")  # fmt: skip
    parser.add_argument("--given", type=Path, metavar="FILE",
        help="input file; the program finds it in a directory of its own")  # fmt: skip
    return parser


def main(arguments: list[str]) -> int:
    """Run the program; returns its exit code, 1 for a signal.  Raises :class:`AppUsageError`."""
    options, program = _parse(arguments)
    if options.help:
        print(build_parser().format_help())
        return 0
    with tempfile.TemporaryDirectory() as own:
        if options.given:
            shutil.copy(options.given, own)
        lines, code = _run(program, own if options.files or options.given else None)
        if options.files:
            for path in sorted(p for p in Path(own).glob(options.files) if p.is_file()):
                lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
    result = figure(options, lines)
    if code == 0 and result:
        print(json_line(result), flush=True)
    return max(code, 0) or int(code < 0)


def figure(options: Any, lines: Iterable[str]) -> dict[str, Any]:
    """``figure`` as printed, ``seconds`` and ``verified``; {} if no line has a figure above 0.

    The first matching line counts, because callers request one message size per run. Raises
    :class:`AppUsageError` if the group of the pattern held no number.
    """
    lines = list(lines)
    match = next((m for m in map(re.compile(options.figure).search, lines) if m), None)
    if match is None:
        return {}
    try:
        number = number_at(match.string, *match.span(1))
    except CutNumber:
        number = None
    if number is None:
        raise AppUsageError(
            f"--figure {options.figure!r} found {match[1]!r}, which is not a number, or a part of "
            f"one that is not certain, in the line\n  {match.string.strip()[:200]}",
            code="micro.figure",
        )
    value = number.value
    if value <= 0:
        return {}
    seconds = value * 1e-6 * options.us_of if options.us_of else options.rate_of / value
    right = not options.valid or any(re.search(options.valid, line) for line in lines)
    wrong = bool(options.invalid) and any(re.search(options.invalid, line) for line in lines)
    return {"figure": value, "seconds": seconds, "verified": right and not wrong}


def _run(program: list[str], directory: str | None) -> tuple[list[str], int]:
    """The program's output, which is also passed on line by line, and its exit code."""
    with subprocess.Popen(
        program,
        cwd=directory,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # A rank talks to Hydra, the launcher of MPICH and Intel MPI, by an open file (PMI_FD).
        close_fds=False,
    ) as child:
        assert child.stdout is not None
        lines = []
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return lines, child.returncode


def _parse(arguments: list[str]) -> tuple[Any, list[str]]:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = build_parser().parse_args(arguments[:cut])
    program = arguments[cut + 1 :]
    if options.help:
        return options, program
    if not program:
        raise AppUsageError(
            "no program given; expected -- PROGRAM ARGS at the end", code="micro.figure"
        )
    if not options.figure or bool(options.us_of) == bool(options.rate_of):
        raise AppUsageError(
            "expected --figure RE and either --us-of CALLS or --rate-of WORK", code="micro.figure"
        )
    for pattern in filter(None, (options.figure, options.valid, options.invalid)):
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise AppUsageError(
                f"{pattern!r} is not a regular expression: {error}", code="micro.figure"
            ) from None
        if pattern is options.figure and groups != 1:
            raise AppUsageError(
                f"--figure {pattern!r} must have one group, around the figure", code="micro.figure"
            )
    return options, program


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except AppUsageError as error:
        print(f"runner.programs.micro.brought: error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        drop_output()
        sys.exit(1)
    except OSError as error:
        print(f"runner.programs.micro.brought: error: {error}", file=sys.stderr)
        sys.exit(1)
