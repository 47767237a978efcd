"""Randomised interleaved blocks: each holds the reference and every setting compared, once, in
random order.  Blocks already measured are read from the ledger: an interrupted comparison
goes on."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from autotune.errors import WorkError
from autotune.space import DEFAULT, Setting
from autotune.study.bench import Bench
from autotune.study.ledger import Entry

_REPEATS = 3
"""How often a block whose default run failed is measured anew before the study gives up."""


class Blocks:
    """The blocks of one phase: ``settings`` against ``reference``; ``seed`` fixes the orders."""

    def __init__(
        self,
        bench: Bench,
        phase: str,
        settings: Sequence[Setting],
        seed: int,
        limit_s: float | None,
        reference: Setting = DEFAULT,
    ) -> None:
        self.bench = bench
        self.phase = phase
        self.settings = tuple(settings)
        self.seed = seed
        self.limit_s = limit_s
        self.reference = reference

    def ensure(self, count: int) -> None:
        """Measure until ``count`` blocks hold the default and every setting."""
        for number in range(count):
            self.ensure_block(number, self.settings)

    def ensure_block(self, number: int, live: Sequence[Setting]) -> None:
        """Measure block ``number`` unless it already holds the default and all of ``live``."""
        if not self._complete(number, live):
            self._measure(number, live)

    def _complete(self, number: int, wanted: Sequence[Setting]) -> bool:
        block = self.bench.ledger.blocks(self.phase).get(number, {})
        default = block.get(self.reference.key)
        return (
            default is not None
            and default.record.valid
            and all(setting.key in block for setting in wanted)
        )

    def _measure(self, number: int, wanted: Sequence[Setting]) -> None:
        """One whole block anew: halves of an interrupted one lie too far apart in time."""
        rng = np.random.default_rng([self.seed, number, _number(self.phase)])
        members = (self.reference, *wanted)
        for _attempt in range(_REPEATS):
            for position, index in enumerate(rng.permutation(len(members))):
                setting = members[index]
                entry = self.bench.run(
                    setting,
                    self.phase,
                    block=number,
                    position=position,
                    timeout_s=None if setting == self.reference else self.limit_s,
                )
            if self._complete(number, wanted):
                return
        entry = self.bench.ledger.blocks(self.phase)[number][self.reference.key]
        raise WorkError(
            f"the reference ({self.reference.key}) itself fails ({entry.record.reason}); "
            f"{_REPEATS} attempts of one block "
            "ended so.  What was measured is kept; the same command continues."
        )

    def pairs(
        self, setting: Setting, against: Setting | None = None, first: int | None = None
    ) -> Pairs:
        """The runs of both in every block that holds both, in block order.

        ``first`` keeps to that many blocks: one that was interrupted may lie behind them.

        A candidate that failed counts as slower than anything; one stopped at its limit is slower
        than it says.
        """
        found = Pairs()
        versus = self.reference if against is None else against
        for number, block in sorted(self.bench.ledger.blocks(self.phase).items()):
            if first is not None and number >= first:
                break
            reference, candidate = block.get(versus.key), block.get(setting.key)
            if reference is None or candidate is None or not reference.record.valid:
                continue
            found.reference.append(reference.record.value_s)
            found.candidate.append(_seconds(candidate, reference))
            found.censored.append(not candidate.record.valid)
            found.clock = reference.record.metric_s is None
        return found


@dataclass
class Pairs:
    """Seconds of two settings block by block; all lists of one length.

    ``censored`` marks candidates of which only a lower bound is known.
    """

    reference: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)
    censored: list[bool] = field(default_factory=list)
    clock: bool = False
    """The figures are wall times, not a program's own figure."""

    @property
    def ratios(self) -> list[float]:
        """candidate / reference of each block, a censored one infinite."""
        return [
            math.inf if cut else c / r
            for r, c, cut in zip(self.reference, self.candidate, self.censored, strict=True)
        ]

    def median_ratio(self) -> float:
        """Median over the blocks; infinite without any."""
        return statistics.median(self.ratios) if self.ratios else math.inf

    def slower_share(self) -> float:
        """Share of the blocks in which the candidate took longer."""
        return sum(r > 1 for r in self.ratios) / len(self.ratios) if self.ratios else 1.0


def _seconds(candidate: Entry, reference: Entry) -> float:
    """The candidate's seconds, or what is certain of them."""
    if candidate.record.valid:
        return candidate.record.value_s
    if candidate.censored:
        outside = reference.record.wall_s - reference.record.value_s
        return max(candidate.record.wall_s - outside, reference.record.value_s)
    return reference.record.value_s


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
