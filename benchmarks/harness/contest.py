"""Contestants that are tuned with as many settings each, before they are compared.

Every setting runs once, the fastest quarter of each contestant three times more, and the best
median is its tuned setting. All run in random order. Settings that fail are left out and named.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from autotune.errors import WorkError
from benchmarks.harness.bench import Busy, interleaved

KEPT, MORE = 4, 3
"""One in so many settings runs so many times more."""
Setting = TypeVar("Setting", bound=Hashable)


@dataclass(frozen=True)
class Tuning(Generic[Setting]):
    """A contestant's fastest setting, and those that failed with the reason."""

    tuned: Setting
    tried: int
    left_out: Mapping[Setting, str]


def _finalists(count: int) -> int:
    return -(-count // KEPT)


def runs_of(count: int) -> int:
    """Number of runs that tune a contestant with so many settings."""
    return count + MORE * _finalists(count)


def tune(
    contestants: Mapping[str, Sequence[Setting]],
    seconds: Callable[[str, Setting], float],
    seed: int,
) -> dict[str, Tuning[Setting]]:
    """Tune all contestants; ``seconds`` runs one with a setting, or raises WorkError.

    Raises WorkError for a contestant of which no setting works.
    """
    times: dict[tuple[str, Setting], list[float]] = {}
    failures: dict[tuple[str, Setting], str] = {}

    def attempt(key: tuple[str, Setting], block: int) -> None:
        if key in failures:
            return
        try:
            times.setdefault(key, []).append(seconds(*key))
        except Busy:
            raise
        except WorkError as error:
            failures[key] = f"{error}".strip().splitlines()[-1]

    def fastest(name: str, among: Sequence[Setting]) -> list[Setting]:
        valid = [one for one in among if (name, one) not in failures]
        return sorted(valid, key=lambda one: statistics.median(times[name, one]))

    interleaved([(n, one) for n, own in contestants.items() for one in own], attempt, 1, seed)
    finalists = {n: fastest(n, own)[: _finalists(len(own))] for n, own in contestants.items()}
    interleaved([(n, one) for n, own in finalists.items() for one in own], attempt, MORE, seed + 1)
    tunings = {}
    for name, own in contestants.items():
        left_out = {one: failures[name, one] for one in own if (name, one) in failures}
        order = fastest(name, finalists[name])
        if not order:
            why = next(iter(left_out.values()))
            raise WorkError(
                f"{name}: none of {len(own)} settings works: {why}", code="benchmark.fails"
            )
        tunings[name] = Tuning(order[0], len(own), left_out)
    return tunings
