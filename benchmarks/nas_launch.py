"""One valid run of a NAS-style kernel, for the two benchmarks of these kernels."""

from __future__ import annotations

import dataclasses
from typing import Any

from autotune.api.target import find_target
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from runner.guard import wait_quiet
from runner.launch import Runner

GIVE_UP = 6
"""Number of launches that the guard may reject before a run is given up."""
QUIET_S = 20.0
TIMEOUT_S = 1200.0


class TooBusy(Exception):
    """Every run of a case had foreign load."""


def target_of(kernel: str, problem_class: str, ranks: int) -> Target:
    """The default launch of a kernel on this machine."""
    words = TargetRequest(
        None, f"nas-{kernel}", problem_class, ranks, "local", None, None, None, TIMEOUT_S
    )
    return find_target(words)


def run(
    runner: Runner, kernel: str, problem_class: str, ranks: int, *words: str
) -> tuple[dict[str, Any], int]:
    """The JSON line of a valid run under the default, and the number of runs rejected before it.

    Raises :class:`TooBusy`, and ``SystemExit`` with the reason if the kernel itself fails.
    """
    target = target_of(kernel, problem_class, ranks)
    plain = target.spec(None)
    spec = dataclasses.replace(plain, program=(*plain.program, *words))
    for rejected in range(GIVE_UP):
        record = runner.run(spec)
        if record.valid:
            return record.extra, rejected
        if record.state != "foreign_load":
            raise SystemExit(
                f"nas {kernel} {problem_class}, {ranks} ranks: {record.state}: {record.reason}"
            )
        wait_quiet(QUIET_S)
    raise TooBusy(record.reason)
