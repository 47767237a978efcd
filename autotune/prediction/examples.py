"""What prediction learns from: a program as it was traced, and what settings did to its time."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Value
from autotune.words import count
from runner.trace import Features

Floats = NDArray[np.float64]

EXTREME = math.log(1.5)
"""Log ratio that stands for everything slower, failures included, and its negative for everything
faster: one program that is five times faster must not decide for all others."""
LEAST_NOISE = 0.01
"""No default is believed to scatter less (as a log ratio): few runs can agree by chance."""


@dataclass(frozen=True)
class Example:
    """One cell: a program with its input, ranks and cluster.

    ``settings[0]`` is the default.  ``runs`` has one tuple a setting: T / T_default of its runs,
    infinite for a run that failed.  ``opub`` is T_OPUB / T_default, 1 where the cell is ``null``:
    nothing beats the default beyond noise.  ``mpi`` is ``family version``, ``machine`` the
    fingerprint of one.
    """

    key: str
    app: str
    ranks: int
    cluster: str
    features: Features
    settings: tuple[Setting, ...]
    runs: tuple[tuple[float, ...], ...]
    opub: float = 1.0
    null: bool = True
    machine: str = ""
    mpi: str = ""

    @cached_property
    def ratios(self) -> Floats:
        """Median T / T_default of each setting; the default's is 1.

        On a null cell none is below 1: what looks faster there is the luckiest of many.
        """
        medians = np.array([statistics.median(r) if r else math.inf for r in self.runs])
        medians[0] = 1.0
        return np.maximum(medians, 1.0) if self.null else medians

    @cached_property
    def logs(self) -> Floats:
        """Log of the ratios, cut off at EXTREME either way."""
        with np.errstate(divide="ignore"):
            return np.clip(np.log(self.ratios), -EXTREME, EXTREME)

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the log ratio of one run, from the default's runs (robust)."""
        finite = [math.log(r) for r in self.runs[0] if 0 < r < math.inf]
        if len(finite) < 3:
            return 0.03
        middle = statistics.median(finite)
        return max(LEAST_NOISE, 1.4826 * statistics.median(abs(x - middle) for x in finite))

    def beyond_noise(self, index: int) -> float:
        """The log ratio above which this setting is slower than the default, not just unlucky."""
        runs = max(1, len(self.runs[index])), max(1, len(self.runs[0]))
        return max(math.log(1.02), 2 * self.noise * math.sqrt(1 / runs[0] + 1 / runs[1]))


@dataclass(frozen=True)
class TrainingSet:
    """Examples from one or more recordings.

    ``defaults`` are the values that an unset parameter has, where known.  Raises UsageError where
    there are too few programs to learn and to check on.
    """

    examples: tuple[Example, ...]
    sources: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.apps) < 3:
            place = ", ".join(self.sources) or "the training data"
            raise UsageError(
                f"{place}: {count(len(self.apps), 'program')} with features and runs "
                f"({', '.join(self.apps) or 'none'}); prediction needs at least 3, because "
                "each is left out in turn to validate the model.\n" + "\n".join(self.notes)
            )

    @property
    def apps(self) -> tuple[str, ...]:
        return tuple(sorted({e.app for e in self.examples}))

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(sorted({e.machine for e in self.examples if e.machine}))

    @property
    def mpis(self) -> tuple[str, ...]:
        return tuple(sorted({e.mpi for e in self.examples if e.mpi}))

    @property
    def hash(self) -> str:
        """SHA-256 (hex) over features, settings and runs, in an order that does not matter."""
        rows = sorted(
            json.dumps(
                [
                    e.key,
                    e.app,
                    e.ranks,
                    e.cluster,
                    e.features.vector(),
                    [s.key for s in e.settings],
                    [[repr(r) for r in runs] for runs in e.runs],
                ]
            )
            for e in self.examples
        )
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def distinct(examples: Iterable[Example]) -> tuple[Setting, ...]:
    """Every setting that the examples ran, each once, the default first."""
    seen: dict[Setting, None] = {DEFAULT: None}
    for example in examples:
        seen.update(dict.fromkeys(example.settings))
    return tuple(seen)


def means(examples: Sequence[Example], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Weighted mean log ratio by setting key, over the examples that ran the setting."""
    total: dict[str, float] = {}
    weight: dict[str, float] = {}
    for example, w in zip(examples, weights or [1.0] * len(examples), strict=True):
        for setting, log in zip(example.settings, example.logs, strict=True):
            total[setting.key] = total.get(setting.key, 0.0) + w * float(log)
            weight[setting.key] = weight.get(setting.key, 0.0) + w
    return {key: total[key] / weight[key] for key in total}
