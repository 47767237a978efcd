"""What must stay the same through deletions, moves and renames; see docs/project/testing.md.

``record`` writes one folder of plain text for each part; the same command goes on where it stopped.
``compare`` shows what differs between two records and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.lock import MachineLock
from tests.revision import ROOT, code_of_now


@dataclass(frozen=True)
class Part:
    """One folder of a record; ``seconds`` is what it takes on two quiet cores, about."""

    name: str
    module: str
    """The module of this package whose ``record(name, out, place)`` writes it."""
    seconds: float


PARTS = (
    Part("published", "published", 110),
    Part("names", "names", 40),
    Part("commands", "commands", 110),
    Part("kills", "faults", 75),
    Part("study", "simulations", 35),
    Part("trust", "simulations", 35),
    Part("main", "simulations", 110),
    Part("published-gains", "simulations", 10),
    Part("stats", "simulations", 45),
    Part("racing", "simulations", 15),
    Part("classwide", "simulations", 140),
    Part("attacks", "faults", 60),
)
COMMIT = "commit"
"""The file of a record that names the state of the code; it is not compared."""


def main() -> int:
    parser = argparse.ArgumentParser(prog=".ci/witness", description=__doc__)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument(
        "folders", type=Path, nargs="*", metavar="FOLDER",
        help="record: one (default: .witness/COMMIT); compare: two",
    )  # fmt: skip
    names = [part.name for part in PARTS]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names)
    )
    parser.add_argument(
        "--limit", type=float, default=1200, metavar="S", help="seconds of a part at most"
    )
    given = parser.parse_args()
    parts = [part for part in PARTS if part.name in given.only]
    try:
        if given.command == "compare":
            return compare(given.folders, parts)
        code = code_of_now()
        folder, *more = given.folders or [ROOT / ".witness" / code]
        if more:
            raise ValueError(f"record writes one folder, not {len(more) + 1}")
        with MachineLock("shared"):
            return record(folder.absolute(), code, parts, given.limit)
    except (OSError, ValueError) as problem:
        print(f"witness: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nwitness: interrupted; the same command goes on", file=sys.stderr)
        return 130


def compare(folders: Sequence[Path], parts: Sequence[Part]) -> int:
    """0 if the parts of two records are equal, 1 if not.

    ValueError unless there are two folders that hold all of the parts.
    """
    if len(folders) != 2:
        raise ValueError(f"compare reads two folders, not {len(folders)}")
    for folder in folders:
        if missing := [part.name for part in parts if not (folder / part.name).is_dir()]:
            raise ValueError(f"{folder} has no {', '.join(missing)}: .ci/witness record {folder}")
    different = []
    for part in parts:
        pair = [f"{folder / part.name}" for folder in folders]
        if subprocess.run(["diff", "-ruN", *pair], check=False).returncode:
            different.append(part.name)
    words = f"different: {', '.join(different)}" if different else "no difference"
    print(words, file=sys.stderr)
    return int(bool(different))


def record(folder: Path, code: str, parts: Sequence[Part], limit: float) -> int:
    """Record the parts that ``folder`` lacks; 1 if one of them failed.

    ValueError if the folder holds the record of another state of the code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recorded = {part.name for part in PARTS if (folder / part.name).is_dir()}
    former = (folder / COMMIT).read_text().strip() if recorded else code
    if former != code:
        raise ValueError(f"{folder} is a record of {former}, and this is {code}: name another one")
    (folder / COMMIT).write_text(f"{code}\n")
    left = [part for part in parts if part.name not in recorded]
    print(f"{folder}: {len(parts) - len(left)} of {len(parts)} parts recorded", file=sys.stderr)
    failed, began, done_s = 0, time.monotonic(), 0.0
    for number, part in enumerate(left, 1):
        pace = (time.monotonic() - began) / done_s if done_s else 1.0
        minutes = pace * sum(one.seconds for one in left[number - 1 :]) / 60
        words = f"[{number}/{len(left)}] {part.name} (all that is left: {minutes:.0f} min) ... "
        print(words, end="", file=sys.stderr, flush=True)
        start = time.monotonic()
        problem = _record(part, folder, limit)
        print(problem or f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        failed += bool(problem)
        done_s += part.seconds
    return int(failed > 0)


def _record(part: Part, folder: Path, limit: float) -> str:
    """Record one part, whole or not at all; returns what went wrong, "" if nothing did."""
    out = folder / f".new-{part.name}"
    shutil.rmtree(out, ignore_errors=True)  # Of a recording that was killed.
    out.mkdir()
    with tempfile.TemporaryDirectory(prefix="witness-") as name:
        place = Path(name)
        code = _run(part, out, place, limit)
        if code:
            shutil.rmtree(out)
            said = (place / "log").read_text(errors="replace")[-3000:]
            return f"FAILED with {code}\n{said}"
    out.rename(folder / part.name)
    return ""


def _run(part: Part, out: Path, place: Path, limit: float) -> int:
    """Exit code of a part: a process with a home of its own, whose group ends with it."""
    given = (part.name, f"{out}", f"{place}")
    text = "import sys, pathlib; from tests.witness.{} import record; name, *places = sys.argv[1:]"
    text = f"{text.format(part.module)}; record(name, *map(pathlib.Path, places))"
    foreign = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "AUTOTUNE_STORE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    environment |= {"PYTHONPATH": f"{ROOT}", "COLUMNS": "80"}
    environment.setdefault("XDG_CACHE_HOME", f"{Path.home() / '.cache'}")
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        environment[variable] = f"{place / variable}"
        (place / variable).mkdir()
    with (place / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", text, *given], cwd=ROOT, env=environment, stdout=log,
            stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            log.write(f"\nended: longer than {limit:.0f} s\n")
            return 124
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    # A plain kill ends the part's processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
