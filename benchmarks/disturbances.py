"""Disturbances: simulated machines on which runs act on each other and settings have spells.

A disturbance begins a machine for one study. The machine gives the seconds of each run from what
was launched before it. In every null no setting differs from the default by what it does itself;
one is slower in the mean. The gains are for the power of a procedure.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from autotune.measurement.run_history import HistoryEntry
from autotune.space import DEFAULT, Setting
from autotune.study.simulation import SimulatedEvaluator
from benchmarks.study_simulation import NOISES, Noise
from benchmarks.trust_simulation import ADVERSE, Model


@dataclass(frozen=True)
class Launch:
    """A run that begins: its setting, the settings of all runs ``before`` it, its place.

    ``position`` is the place in its block, from 0; 0 for a run outside of blocks.
    """

    setting: Setting
    before: Sequence[Setting]
    position: int = 0


Machine = Callable[[Launch], float | str]
"""Seconds of a run, or the state ("failed", ...) in which it ends; called once for each run."""
Disturbance = Callable[[np.random.Generator], Machine]
"""Begins the machine of one study, which draws from the generator."""
Path = Callable[[np.random.Generator], Iterator[float]]
"""The logarithm of the machine's time, run after run."""


class DisturbedEvaluator(SimulatedEvaluator):
    """A simulated evaluator whose machine is told what was launched before a run."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(self._seconds, np.random.default_rng(0))
        self._machine = machine
        self._before: list[Setting] = []
        self._position = 0

    def run(self, setting: Setting, phase: str, **place: Any) -> HistoryEntry:
        self._position = place.get("position", 0)
        return super().run(setting, phase, **place)

    def _seconds(self, setting: Setting, rng: np.random.Generator) -> float | str:
        drawn = self._machine(Launch(setting, self._before, self._position))
        self._before.append(setting)
        return drawn


def carry_over(extra: float, noise: float) -> Disturbance:
    """A run after a run of another setting than the default takes longer by ``extra``."""

    def begin(rng: np.random.Generator) -> Machine:
        def seconds(launch: Launch) -> float:
            late = bool(launch.before) and launch.before[-1] != DEFAULT
            return (1 + extra * late) * float(rng.lognormal(0, noise))

        return seconds

    return begin


def heat(extra: float, noise: float) -> Disturbance:
    """Each run of another setting than the default adds ``extra``, which halves with each run."""

    def begin(rng: np.random.Generator) -> Machine:
        def seconds(launch: Launch) -> float:
            warm = 0.0
            for setting in launch.before[-20:]:
                warm = warm / 2 + extra * (setting != DEFAULT)
            return (1 + warm) * float(rng.lognormal(0, noise))

        return seconds

    return begin


def own_spells(ratio: float, length: float, noise: float) -> Disturbance:
    """Each setting, the default too, has fast and slow spells of a mean ``length`` of its runs."""

    def begin(rng: np.random.Generator) -> Machine:
        slow: dict[Setting, bool] = {}

        def seconds(launch: Launch) -> float:
            one = launch.setting
            if one not in slow:
                slow[one] = bool(rng.random() < 0.5)
            elif rng.random() < 1 / length:
                slow[one] = not slow[one]
            return (ratio if slow[one] else 1.0) * float(rng.lognormal(0, noise))

        return seconds

    return begin


def sometimes_slow(share: float, factor: float, faster: float, noise: float) -> Disturbance:
    """Candidates take 1 - ``faster`` of the default's time, in a ``share`` ``factor`` of this."""

    def begin(rng: np.random.Generator) -> Machine:
        def seconds(launch: Launch) -> float:
            own = 1.0 if launch.setting == DEFAULT else 1 - faster
            slow = launch.setting != DEFAULT and rng.random() < share
            return own * (factor if slow else 1.0) * float(rng.lognormal(0, noise))

        return seconds

    return begin


def second_place(extra: float, noise: float) -> Disturbance:
    """The second run of a block takes longer by ``extra``."""

    def begin(rng: np.random.Generator) -> Machine:
        return lambda launch: (1 + extra * (launch.position == 1)) * float(rng.lognormal(0, noise))

    return begin


def failures(share: float, noise: float) -> Disturbance:
    """A ``share`` of all runs fails."""

    def begin(rng: np.random.Generator) -> Machine:
        return lambda launch: "failed" if rng.random() < share else float(rng.lognormal(0, noise))

    return begin


def machine_path(path: Path, noise: float) -> Disturbance:
    """All settings alike on a machine whose speed follows a path."""

    def begin(rng: np.random.Generator) -> Machine:
        logs = path(rng)
        return lambda launch: math.exp(next(logs)) * float(rng.lognormal(0, noise))

    return begin


def wave(swing: float, shortest: float, longest: float) -> Path:
    """A sine of +-``swing``; its period in runs and its phase are drawn."""

    def logs(rng: np.random.Generator) -> Iterator[float]:
        period, phase = rng.uniform(shortest, longest), rng.uniform(0, 2 * math.pi)
        for run in count():
            yield math.log1p(swing * math.sin(2 * math.pi * run / period + phase))

    return logs


def autoregressive(first: float, second: float, scatter: float) -> Path:
    """An AR(2) of standard deviation ``scatter``; ``second`` of 0 makes it an AR(1)."""
    share = (1 + second) * ((1 - second) ** 2 - first**2) / (1 - second)
    step = scatter * math.sqrt(share)

    def logs(rng: np.random.Generator) -> Iterator[float]:
        before, last = 0.0, 0.0
        for run in count():
            before, last = last, first * last + second * before + step * float(rng.normal())
            if run >= 200:  # The start is forgotten.
                yield last

    return logs


def resonance(modulus: float, period: float, scatter: float) -> Path:
    """An AR(2) whose roots have a modulus and a period in runs."""
    return autoregressive(2 * modulus * math.cos(2 * math.pi / period), -(modulus**2), scatter)


def walk(step: float) -> Path:
    """A random walk."""

    def logs(rng: np.random.Generator) -> Iterator[float]:
        here = 0.0
        while True:
            here += step * float(rng.normal())
            yield here

    return logs


def noise_alone(noise: Noise) -> Disturbance:
    """A noise of benchmarks.study_simulation."""
    return lambda rng: lambda launch: noise(rng, len(launch.before))


def by_setting(model: Model) -> Disturbance:
    """A model of benchmarks.trust_simulation."""
    return lambda rng: lambda launch: model(launch.setting, rng, len(launch.before))


def acting(gain: float, noise: float) -> Disturbance:
    """Every candidate has a gain.

    The n-th run of a setting has the same noise whatever ran before it. So two procedures that
    launch the same pairs in another order prove the same.
    """

    def begin(rng: np.random.Generator) -> Machine:
        root = int(rng.integers(2**32))
        own: dict[Setting, np.random.Generator] = {}

        def seconds(launch: Launch) -> float:
            one = launch.setting
            if one not in own:
                own[one] = np.random.default_rng([root, zlib.crc32(one.key.encode())])
            better = gain if one != DEFAULT else 0.0
            return float(own[one].lognormal(0, noise)) / (1 + better)

        return seconds

    return begin


OWN_SPELLS = "own spells of 8 runs, 10 %, at 2 % noise"
"""The null for which a larger share of false winners is a stated limit."""
DISTURBED: dict[str, Disturbance] = {
    "carry-over of 10 % at 5 % noise": carry_over(0.10, 0.05),
    "carry-over of 5 % at 2 % noise": carry_over(0.05, 0.02),
    "carry-over of 3 % at 2 % noise": carry_over(0.03, 0.02),
    "carry-over of 5 % at 5 % noise": carry_over(0.05, 0.05),
    "heat of 5 % that halves each run, at 2 % noise": heat(0.05, 0.02),
    "period of 4 runs, +-5 %, at 2 % noise": machine_path(wave(0.05, 3.8, 4.2), 0.02),
    "AR(2) of period 4, rho 0.95, 5 %": machine_path(resonance(0.95, 4.0, 0.05), 0.0),
    OWN_SPELLS: own_spells(1.10, 8, 0.02),
    "a quarter takes 1.9x, 18 % worse in the mean": sometimes_slow(0.25, 1.9, 0.04, 0.01),
}
"""Nulls of runs that are not exchangeable, and the one of a mean; false winners were seen here."""
PLAIN: dict[str, Disturbance] = {
    **{f"noise: {name}": noise_alone(noise) for name, noise in NOISES.items()},
    **{name: by_setting(model) for name, model in ADVERSE.items()},
    "AR(1), rho 0.9, 5 %": machine_path(autoregressive(0.9, 0.0, 0.05), 0.02),
    "random walk of 2 % a run": machine_path(walk(0.02), 0.02),
    "second place 10 % slower, at 5 % noise": second_place(0.10, 0.05),
    "a tenth of the runs fails, at 5 % noise": failures(0.10, 0.05),
}
"""Nulls under which the procedure held."""
NULLS = DISTURBED | PLAIN
GAINS: dict[str, Disturbance] = {
    f"gain of {gain} % at {noise} % noise": acting(gain / 100, noise / 100)
    for noise in (5, 10, 15)
    for gain in (5, 10, 20)
}
"""One gain of every candidate, for power."""
TRUTHS = NULLS | GAINS
