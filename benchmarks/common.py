"""Shared parts of the benchmarks: their end, ``autotune`` as a command, and figures.

Nothing of the tuner is imported, so that a benchmark may run beside programs alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from autotune.errors import AutotuneError
from runner.errors import RunnerError
from runner.files.closed_output import drop_output
from runner.machine import describe_machine

ROOT = Path(__file__).parents[1]


def run_benchmark(main: Callable[[], int | None]) -> NoReturn:
    """Run a benchmark and end the process with the exit code that ``main`` returns.

    An error is told in words. If the reader of the output goes (``| head``), the benchmark ends
    quietly with 1: nobody has seen a verdict.
    """
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        code = 1
    except (AutotuneError, RunnerError) as error:
        print(f"{_module()}: {error}", file=sys.stderr)
        code = getattr(error, "exit_code", 1)
    except KeyboardInterrupt:
        print("interrupted; with runs that are kept, the same command goes on", file=sys.stderr)
        code = 130
    sys.exit(code)


def document(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """The figures with date, machine, commit and command."""
    machine = describe_machine()
    return {
        "benchmark": name,
        "date": f"{datetime.date.today()}",
        "machine": f"{machine.cpu_model}, {machine.cores} cores",
        "fingerprint": machine.fingerprint,
        "commit": commit() or "unknown",
        "command": " ".join(["python -m", _module(), *sys.argv[1:]]),
        **figures,
    }


def report(name: str, figures: dict[str, Any], out: str | None) -> None:
    """Print the figures with date, machine, commit and command; write them as JSON to ``out``."""
    data = document(name, figures)
    width = max(len(key) for key in data)
    for key, value in data.items():
        # Whole tables and nested values were printed already; here they would be unreadable.
        if not (isinstance(value, list | dict) and len(f"{value}") > 400):
            print(f"{key:<{width}}  {value}")
    if out:
        Path(out).write_text(json.dumps(data, indent=2) + "\n")


def commit(place: Path = ROOT) -> str:
    """The short name of a checkout's commit, with ``-dirty`` if a file differs from it.

    Empty without git or outside a repository.
    """
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            check=False,
            cwd=place,
        ).stdout.strip()
    except OSError:
        return ""


def _module() -> str:
    """The name given to ``python -m``, with its packages."""
    spec = sys.modules["__main__"].__spec__
    named = spec.name if spec else f"benchmarks.{Path(sys.argv[0]).stem}"
    return named.removesuffix(".__main__")


@dataclass(frozen=True)
class Answer:
    """Answer of one ``autotune`` command: exit code, result as JSON ({} if none), text, seconds."""

    code: int
    result: dict[str, Any]
    text: str
    wall_s: float


def autotune(
    *words: str,
    timeout_s: float = 1200.0,
    python: str = sys.executable,
    place: Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> Answer:
    """Run one command with ``--json -``, as a user would type it.

    ``python`` may be that of another checkout, whose directory is then ``place``. ``env`` are
    further variables.

    A command that still runs after ``timeout_s`` is interrupted as by Ctrl-C, which ends its ranks.
    Options must come before a ``--`` that begins a program.
    """
    cut = words.index("--") if "--" in words else len(words)
    line = [python, "-m", "autotune", *words[:cut], "--json", "-", *words[cut:]]
    began = time.monotonic()
    process = subprocess.Popen(
        line,
        cwd=place,
        env=None if env is None else {**os.environ, **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    finally:
        # After an exception (Ctrl-C, SIGTERM) the command ends its ranks before this process ends.
        if process.poll() is None:
            process.terminate()
            process.wait()
    wall_s = time.monotonic() - began
    return Answer(process.returncode, _json(out), err.strip(), wall_s)


def _json(text: str) -> dict[str, Any]:
    """The result; {} if the command failed and printed none, or the document of an error."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict) or f"{found.get('schema')}".startswith("autotune-error-"):
        return {}
    return found


def rejected_share(result: dict[str, Any]) -> float:
    """Share of a result's launches that the guard rejected, 0 to 1.

    The rejected launches are contained in ``runs`` of a comparison and ``search_runs`` of a search.
    """
    runs = result.get("runs") or (result.get("search_runs", 0) + result.get("confirmation_runs", 0))
    return float(result.get("runs_rejected", 0) / runs) if runs else 0.0


def table(rows: list[dict[str, Any]]) -> None:
    """Rows with the same keys as an aligned table."""
    lines = [list(rows[0]), *([f"{value}" for value in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))


def conclude(
    name: str, bound: str, failures: list[str], figures: dict[str, Any], out: str | None
) -> int:
    """Report with the bound that was checked; returns exit code 0 if the bound holds, else 1."""
    verdict = "FAIL" if failures else "PASS"
    report(name, {**figures, "bound": bound, "verdict": verdict, "failures": failures}, out)
    return 1 if failures else 0


def positive(text: str) -> int:
    """A count on the command line."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return int(text)


def options(description: str | None) -> argparse.ArgumentParser:
    """The command-line options that every check has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--no-guard",
        dest="guard",
        action="store_const",
        const=["--no-guard"],
        default=[],
        help="judge no run by foreign load: for trying out a benchmark, not for figures",
    )
    return parser
