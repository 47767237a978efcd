"""Valid runs, and keys that run in blocks of random order; kept runs are not run again."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from autotune.errors import UsageError, WorkError
from runner.files import write_atomically
from runner.guard import wait_quiet
from runner.launch import Runner
from runner.types import LaunchSpec, RunRecord

QUIET_S = 60.0
GIVE_UP = 20
"""Number of rejections of one run in a row after which the machine counts as too busy."""

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Busy(WorkError):
    """Every run of a launch had foreign load."""


class Bench:
    """Runs launches until a run is valid; ``rejected`` counts the others."""

    def __init__(self, runner: Runner, give_up: int = GIVE_UP, quiet_s: float = QUIET_S) -> None:
        self.runner = runner
        self.rejected = 0
        self._give_up, self._quiet_s = give_up, quiet_s

    def run(self, spec: LaunchSpec, name: str = "") -> RunRecord:
        """One valid run; raises WorkError with the program's last words if it fails."""
        name = name or " ".join(spec.program)
        for _ in range(self._give_up):
            record = self.runner.run(spec)
            if record.valid:
                return record
            if record.state != "foreign_load":
                said = "\n".join(record.stderr_tail.strip().splitlines()[-5:])
                raise WorkError(
                    f"{name}: {record.state}: {record.reason}\n{said}", code="benchmark.fails"
                )
            self.rejected += 1
            wait_quiet(self._quiet_s)
        raise Busy(f"{name}: the machine is too busy: {record.reason}", code="benchmark.busy")


class RunLog:
    """Figures of valid runs in a file, one JSON line each; the first line says whose they are.

    ``identity`` is what follows from lines, commit and machine. Raises UsageError if the file has
    the runs of something else.
    """

    def __init__(self, file: Path | None, identity: dict[str, Any]) -> None:
        self._file = file
        self._runs: dict[str, RunRecord] = {}
        self._failures: dict[str, str] = {}
        if file is None:
            return
        if not file.exists():
            write_atomically(file, json.dumps(identity) + "\n")
            return
        first, *lines = file.read_text().splitlines()
        if json.loads(first) != identity:
            differing = [k for k, v in json.loads(first).items() if identity.get(k) != v]
            raise UsageError(
                f"--keep {file} has runs of another {' and '.join(differing)}; name another file",
                code="benchmark.kept",
            )
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
            except ValueError:
                # The last line of a command that was killed.
                write_atomically(file, "".join(f"{one}\n" for one in (first, *lines[:number])))
                break
            place = entry.pop("place")
            if "failure" in entry:
                self._failures[place] = entry["failure"]
            else:
                self._runs[place] = RunRecord("ok", **entry)

    def __len__(self) -> int:
        return len(self._runs)

    def run(
        self, place: str, run: Callable[[], RunRecord], keeps_failure: bool = False
    ) -> RunRecord:
        """The run that was kept for a place (table, line and block), else a new one.

        Raises WorkError as ``run`` does. With ``keeps_failure`` the failure is kept as well, and
        raised again by the next command; a busy machine is none.
        """
        if place in self._runs:
            return self._runs[place]
        if keeps_failure and place in self._failures:
            raise WorkError(self._failures[place], code="benchmark.fails")
        try:
            record = run()
        except Busy:
            raise
        except WorkError as error:
            if keeps_failure:
                self._keep(place, {"failure": f"{error}"})
            raise
        self._keep(place, {key: getattr(record, key) for key in ("wall_s", "metric_s", "extra")})
        return record

    def _keep(self, place: str, figures: dict[str, Any]) -> None:
        if self._file is not None:
            with self._file.open("a") as out:
                out.write(json.dumps({"place": place, **figures}) + "\n")


def interleaved(
    keys: Sequence[Key],
    run: Callable[[Key, int], Result],
    blocks: int,
    seed: int,
    minutes: float | None = None,
) -> dict[Key, list[Result]]:
    """What ``run(key, block)`` returned for each key, once in every block.

    The order in a block follows from ``seed`` and the block alone. No block begins that would end
    after ``minutes``.
    """
    results: dict[Key, list[Result]] = {key: [] for key in keys}
    begin = time.monotonic()
    for block in range(blocks):
        spent = time.monotonic() - begin
        if minutes is not None and block and spent * (block + 1) / block > 60 * minutes:
            print(f"note: {block} of {blocks} blocks in {minutes:g} minutes", file=sys.stderr)
            break
        for key in random.Random(f"{seed} {block}").sample([*keys], len(keys)):
            results[key].append(run(key, block))
    return results
