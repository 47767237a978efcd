"""Everything that takes long, to its full length, and one table; see docs/project/testing.md.

The same command goes on where it stopped.  A part that has ended is not run again unless the code
changed: results are kept for each commit, and for changes that are not committed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from runner.lock import MachineLock
from runner.machine import describe_machine
from tests.nightly import mpi_library, needs, table
from tests.nightly.parts import ROOT, Part, all_parts, collected
from tests.nightly.result import Result, Results, code_of_now, read_result


def main() -> int:
    given = _arguments()
    lacking = needs.missing()
    try:
        if lacking and given.install:
            needs.install(lacking)
            lacking = needs.missing()
        code = code_of_now()
        results = Results(given.state, code)
        parts = all_parts(results.nodes(collected))
    except ValueError as problem:
        print(f"nightly: {problem}", file=sys.stderr)
        return 2
    parts = [part for part in parts if all(word in part.name for word in given.only)]
    if not parts:
        print(
            f"nightly: no part has {' and '.join(given.only)} in its name; --list", file=sys.stderr
        )
        return 2
    if given.list:
        for part in parts:
            print(f"{'done' if results.get(part) else '    '}  {part.name}")
        return 0
    _tell_missing(lacking)
    try:
        done = _run_all(parts, results, given)
    except KeyboardInterrupt:
        print(f"\nnightly: interrupted; go on with: {shlex.join(['.ci/nightly', *sys.argv[1:]])}")
        return 130
    head = _head(code)
    print(f"\n{table.plain(head, done)}")
    if given.markdown:
        given.markdown.write_text(table.markdown(head, done))
    return int(any(result.failed for result in done))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=".ci/nightly", description=__doc__)
    parser.add_argument(
        "--state", type=Path, default=ROOT / ".nightly", help="folder of results and logs"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="in the part's name")
    parser.add_argument("--failed", action="store_true", help="run parts that failed once more")
    parser.add_argument("--list", action="store_true", help="the parts, and which are done")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there too")
    parser.add_argument("--install", action="store_true", help="apt-get and pip what is missing")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of a part at most")
    return parser.parse_args()


def _tell_missing(lacking: list[needs.Need]) -> None:
    for need in lacking:
        print(f"missing: {need.what}")
    for command in needs.commands(lacking):
        print(f"  {shlex.join(command)}")
    if lacking:
        print("what needs these is skipped (or --install gets them)\n", flush=True)


def _run_all(parts: list[Part], results: Results, given: argparse.Namespace) -> list[Result]:
    done = []
    kept = [r for p in parts if (r := results.get(p)) and not (given.failed and r.failed)]
    names = {result.name for result in kept}
    print(f"{len(parts)} parts, {len(kept)} done before; results in {results.folder}", flush=True)
    for number, part in enumerate(parts, 1):
        result = results.get(part) if part.name in names else None
        if result is None:
            print(f"[{number:>3}/{len(parts)}] {part.name} ... ", end="", flush=True)
            result = _run(part, results, given.limit)
            results.put(part, result)
            word = f"{result.failed} FAILED" if result.failed else "skipped"
            print(f"{'ok' if result.passed and not result.failed else word} {result.seconds:.0f} s")
            version = mpi_library.version(results.log(part))
            if version is not None:
                print(f"          {version}", flush=True)
        done.append(result)
    return done


def _run(part: Part, results: Results, limit: float) -> Result:
    """Carry out a part; its processes end with this one."""
    log = results.log(part)
    if part.kind == "covered" and not needs._module("atheris")():
        log.write_text("atheris is not installed\n")
        return Result(part.name, part.row, 1, 0, 0, 1, 0.0, str(log))
    began = time.monotonic()
    # pytest takes the machine's lock itself.
    lock = MachineLock("shared") if part.kind != "pytest" else contextlib.nullcontext()
    with lock, log.open("w") as out, _ended(part, out) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = 124
            out.write(f"\nended: longer than {limit:.0f} s\n")
    return read_result(
        part, code, log.read_text(errors="replace"), time.monotonic() - began, str(log)
    )


@contextlib.contextmanager
def _ended(part: Part, out: object) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a part in a group of its own, which is killed if it is still there."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **part.environment}
    process = subprocess.Popen(
        part.command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _head(code: str) -> str:
    machine = describe_machine()
    return (
        f"nightly of commit {code}, {datetime.date.today()}; machine {machine.fingerprint} "
        f"({machine.cores} cores, {machine.cpu_model}, {machine.memory_bytes / 2**30:.0f} GiB), "
        f"Python {sys.version.split()[0]}"
    )


if __name__ == "__main__":
    # A plain kill ends the part's processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
