"""Everything that takes long, to its full length, and one table; see docs/project/testing.md.

The same command goes on where it stopped.  A part that has ended is not run again unless the code
changed: results and outputs are kept by commit, and for changes that are not committed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from runner.lock import MachineLock
from runner.machine import describe_machine
from runner.supervise.process_tree import descendants
from tests.revision import ROOT, code_of_now
from tests.skips import remedy

VARIABLES = {"PYTHONPATH": f"{ROOT}", "AUTOTUNE_TEST_MPIS": "all", "AUTOTUNE_CHAOS_KILLS": "200"}
PYTEST = (
    *("pytest", "-q", "-rfEs", "-p", "no:cacheprovider"),
    *("--hypothesis-profile", "random", "-m"),  # Other examples than those of the plain suite.
)
PROPERTIES = "hypothesis and not slow and not chaos"
LIBRARIES = "tests/contract/test_mpi_library_contract.py"  # Whole: large ones are here only.
FUZZ = {"fuzz": "tests.fuzz.long --tries 100000 --seconds 20 --only"}
if importlib.util.find_spec("atheris"):
    FUZZ["covered"] = "tests.fuzz.covered --seconds 10"
SIMULATIONS = (  # Those that no slow test carries out.
    "study_simulation --studies 100 --candidates 40 --power-studies 300",
    "main_simulation --studies 30",
    *(f"stats_simulation --{table}" for table in ("coverage", "null", "power", "racing")),
    "anova_null --series 100",
)


Result = tuple[int, float, str]  # Exit code, seconds, and the last line of the output.


class Part(NamedTuple):
    """One command: what follows ``python -m``.  Nothing runs beside a part that is alone."""

    name: str
    command: tuple[str, ...]
    alone: bool = False

    def log(self, folder: Path) -> Path:
        return folder / f"{quote(self.name, ' ')}.log"


def all_parts(files: Iterable[str]) -> list[Part]:
    """Every part; ``files`` hold the tests that are marked slow or chaos."""
    from tests.fuzz.parsers import PARSERS

    chaos = [file for file in files if file.startswith("tests/chaos/")]
    slow = [file for file in files if file not in (*chaos, LIBRARIES)]
    return [
        Part(f"libraries {LIBRARIES}", (*PYTEST, "not chaos", LIBRARIES)),
        *(Part(f"slow {file}", (*PYTEST, "slow", file)) for file in slow),
        Part("properties", (*PYTEST, PROPERTIES, "tests")),
        *(Part(f"simulation {s}", tuple(f"benchmarks.{s}".split())) for s in SIMULATIONS),
        *(Part(f"{kind} {name}", (*FUZZ[kind].split(), name)) for kind in FUZZ for name in PARSERS),
        *(Part(f"chaos {file}", (*PYTEST, "chaos", file), alone=True) for file in chaos),
    ]


def long_files() -> list[str]:
    """Files with tests that are marked slow or chaos; ValueError where pytest cannot say it."""
    command = [sys.executable, "-m", *PYTEST, "slow or chaos", "--collect-only"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"pytest cannot collect the tests:\n{done.stdout[-2000:]}{done.stderr}")
    return list(dict.fromkeys(re.findall(r"^(.+?)::", done.stdout, re.MULTILINE)))


def kept(folder: Path) -> dict[str, Result]:
    file = folder / "results"
    return {n: tuple(r) for n, r in json.loads(file.read_text()).items()} if file.exists() else {}


def end(process: subprocess.Popen[bytes]) -> None:
    """End a part and all it started; ranks of a launcher have process groups of their own."""
    for pid in descendants(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_all(
    parts: Sequence[Part], folder: Path, limit: float = 3600, failed: bool = False
) -> dict[str, Result]:
    """The results of all parts: those of earlier runs, without what ``failed``, and new ones."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {name: r for name, r in kept(folder).items() if not (failed and r[0])}
    waiting = [part for part in parts if part.name not in done]
    print(f"{len(parts)} parts, {len(parts) - len(waiting)} done before; {folder}", flush=True)
    running: dict[Part, tuple[subprocess.Popen[bytes], float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (1 if waiting[0].alone else 2):
                part = waiting.pop(0)
                print(f"{part.name} ...", flush=True)
                with part.log(folder).open("wb") as out:
                    process = subprocess.Popen(
                        [sys.executable, "-m", *part.command], cwd=ROOT, env=os.environ | VARIABLES,
                        stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                    )  # fmt: skip
                running[part] = process, time.monotonic()
            time.sleep(0.05)
            for part, (process, began) in list(running.items()):
                code, seconds = process.poll(), round(time.monotonic() - began, 1)
                if code is None and seconds < limit:
                    continue
                end(process)
                del running[part]
                output = part.log(folder).read_text("utf-8", "replace").strip(" =\n")
                last = "too long" if code is None else output.rpartition("\n")[2]
                done[part.name] = 124 if code is None else code, seconds, " ".join(last.split())
                (folder / "results.new").write_text(json.dumps(done))
                (folder / "results.new").replace(folder / "results")
                left = len(waiting) + len(running)
                print(f"{left} left", row(part.name, [done[part.name]]), flush=True)
    finally:
        for process, _ in running.values():
            end(process)
    return {part.name: done[part.name] for part in parts}


def row(name: str, results: Sequence[Result]) -> str:
    failed = sum(code != 0 for code, *_ in results)
    word, seconds = f"{failed} FAILED" if failed else "ok", sum(r[1] for r in results)
    last = results[0][2] if len(results) == 1 else f"{len(results)} parts"
    return f"| {name} | {word} | {seconds:.0f} | {last} |"


def table(results: dict[str, Result]) -> str:
    """Markdown: a row for each part and each kind of fuzzing, and the sum."""
    rows: dict[str, list[Result]] = {}
    for name, result in results.items():
        rows.setdefault(next((k for k in FUZZ if name.startswith(f"{k} ")), name), []).append(
            result
        )
    lines = [row(name, of) for name, of in (*rows.items(), ("all", [*results.values()]))]
    return "\n".join(["| part | | s | last line |", "|---|---|--:|---|", *lines])


def skips(logs: Iterable[Path]) -> list[str]:
    """Why tests were skipped, and how to get what was missing."""
    output = "\n".join(log.read_text("utf-8", "replace") for log in logs)
    reasons = dict.fromkeys(re.findall(r"^SKIPPED \[\d+\] \S+: (.*)$", output, re.MULTILINE))
    get = {reason: remedy(reason) for reason in reasons}
    if "covered" not in FUZZ:
        get["fuzzing guided by coverage needs atheris"] = "pip install atheris"
    return [f"skipped: {reason}: {words}" for reason, words in get.items()]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=".ci/nightly", description=__doc__)
    parser.add_argument("--state", type=Path, default=ROOT / ".nightly", help="results and outputs")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="in the part's name")
    parser.add_argument("--failed", action="store_true", help="run parts that failed once more")
    parser.add_argument("--list", action="store_true", help="the parts, and which are done")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of a part at most")
    given = parser.parse_args(arguments)
    try:
        folder = given.state / code_of_now()
        parts = [p for p in all_parts(long_files()) if all(word in p.name for word in given.only)]
        if not parts:
            raise ValueError(f"no part has {' and '.join(given.only)} in its name; --list")
        if given.list:
            print("\n".join(f"{'done' * (p.name in kept(folder)):<6}{p.name}" for p in parts))
            return 0
        with MachineLock("shared"):
            results = run_all(parts, folder, given.limit, given.failed)
    except (OSError, ValueError) as problem:
        print(f"nightly: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: .ci/nightly {shlex.join(arguments)}", file=sys.stderr)
        return 130
    machine, python = describe_machine(), sys.version.split()[0]
    print(f"\nnightly of commit {folder.name}, {time.strftime('%F')}, Python {python}; machine")
    print(f"{machine.fingerprint} ({machine.cores} cores, {machine.cpu_model})\n\n{table(results)}")
    failed = [f"failed: {p.name}: {p.log(folder)}" for p in parts if results[p.name][0]]
    print(*skips(part.log(folder) for part in parts), *failed, sep="\n")
    return int(bool(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that no part is left over.
    sys.exit(main(sys.argv[1:]))
