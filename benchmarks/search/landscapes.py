"""The landscapes of the benchmark: recorded grids, and functions with a known truth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.datasets import Cell, Dataset, load
from autotune.datasets.replay import Landscape
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space
from benchmarks.search.functions import mpi

Draw = Callable[[Setting, np.random.Generator], tuple[float, str]]
"""One run: its ratio to the default, and ``ok`` or the state in which it ends."""

Foresee = Callable[[Dataset, Cell, Space], tuple[Setting, ...]]
"""A warm start of a cell: settings to try first, predicted from other programs."""

_MOST = 256
_HALVES = 30
_FASTER = 0.99
"""A null landscape has no setting below this ratio."""


@dataclass(frozen=True)
class Land:
    """A landscape; ``truth`` is the held-out T / T_default of a setting (inf: it does not run).

    ``best`` is the ratio of OPUB, ``single`` that of the best setting with only one parameter,
    ``seen`` that of the setting that looks best when all runs that can be drawn are known.
    ``priors`` are the warm start that a model of other programs predicts, for strategies that ask
    for it.
    """

    name: str
    space: Space
    draw: Draw
    truth: Callable[[Setting], float]
    best: float
    single: float
    null: bool
    default_s: float = 1.0
    seen: float = math.nan
    priors: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        if not self.null and self.best >= 1.0:
            raise ValueError(f"{self.name}: nothing beats the default, so it is null")

    def share(self, setting: Setting) -> float:
        """gain / gain(OPUB) of a setting; negative if it is slower than the default."""
        ratio = self.truth(setting)
        return (1 / ratio - 1 if math.isfinite(ratio) else -1.0) / (1 / self.best - 1)

    @property
    def oracle(self) -> float:
        """The share of the setting that looks best when all runs that can be drawn are known.

        1 for a function, whose truth is known.
        """
        return 1.0 if math.isnan(self.seen) else (1 / self.seen - 1) / (1 / self.best - 1)

    def performance(self, setting: Setting) -> float:
        """T_OPUB / T; 0 for a setting that does not run."""
        return self.best / self.truth(setting)


@dataclass(frozen=True)
class Case:
    """A landscape for each seed; for a recorded one each seed holds out another half of the runs.

    ``quality`` says how well it was recorded: runs per point, and the negative noise of one run.
    ``blurred``: there is a gain, but the held-out runs of the settings that look faster than the
    default scatter by more than half of it, so that a share of it would be noise. ``split`` is the
    plan's: strategies were designed on the cells of ``design``.
    """

    name: str
    null: bool
    land: Callable[[int], Land]
    quality: tuple[float, float] = (math.inf, 0.0)
    blurred: bool = False
    split: str = "report"


def fixed(land: Land) -> Case:
    """A landscape that is the same for every seed."""
    return Case(land.name, land.null, lambda seed: land)


@dataclass(frozen=True)
class Recordings:
    """The recorded cells that take part, and the reason for each other one.

    The rule was fixed before the cells were measured that it is applied to from now on, and looks
    at recordings only, never at a search. A cell takes part if it is complete. If several datasets
    have a cell, the recording with the most runs per point counts; of equal ones, the less noisy.
    A landscape whose noise hides its gain (``blurred``) stands apart. There is no other reason.
    """

    cases: list[Case]
    excluded: dict[str, str]

    @property
    def blurred(self) -> list[Case]:
        return [case for case in self.cases if case.blurred]

    @property
    def clear(self) -> list[Case]:
        return [case for case in self.cases if not case.blurred]

    @property
    def reasons(self) -> dict[str, str]:
        """Why each recording that is not among the ``clear`` ones is left out, by its name."""
        hidden = "its noise is more than half of its gain"
        return self.excluded | {case.name: hidden for case in self.blurred}


def recordings(
    places: Sequence[str], split: str | None = None, foresee: Foresee | None = None
) -> Recordings:
    """The cells of datasets (names or folders), or those of one split of them.

    Raises UsageError for a dataset that cannot be read or has no complete cell.
    """
    found: dict[str, Case] = {}
    excluded: dict[str, str] = {}
    for place in places:
        dataset = load(place)
        cells = [c for c in dataset.cells if split in (None, c.split)]
        every = [(c, Landscape(dataset, c.key)) for c in cells]
        excluded |= {land.name: "it is not complete" for _, land in every if not land.complete}
        lands = [(c, land) for c, land in every if land.complete]
        if not lands:
            raise UsageError(
                f"dataset {place} has no complete cell"
                + (f" of the split {split!r}" if split else "")
                + ": finish its measurement, or name another dataset or split",
                code="benchmark.fails",
            )
        for cell, landscape in lands:
            priors = foresee(dataset, cell, landscape.space) if foresee else ()
            case = _recorded_case(landscape, priors, cell.split)
            other = found.get(cell.key)
            better = other is None or case.quality > other.quality
            if better:
                found[cell.key] = case
            if other is not None:
                kept, left = (case, other) if better else (other, case)
                excluded[left.name] = f"{kept.name} has more runs a point or less noise"
    return Recordings(list(found.values()), excluded)


def _recorded_case(whole: Landscape, priors: tuple[Setting, ...], split: str) -> Case:
    null = whole.null or whole.best.ratio >= 1.0
    flat = whole.flatten() if null else None
    counts = [len(whole.draws(s)) for s in whole.settings]

    def land(seed: int) -> Land:
        half, held = whole.halves(seed)
        half = flat or half

        def draw(setting: Setting, rng: np.random.Generator) -> tuple[float, str]:
            drawn = half.draw(setting, rng)
            return drawn.ratio, drawn.state

        def truth(setting: Setting) -> float:
            return held[whole.effective(setting)]

        # Chosen on one half and evaluated on the other, as for every strategy.
        alone = [s for s in half.settings if len(s) <= 1]
        single = held[min(alone, key=half.median)] if alone else 1.0
        seen = held[min(half.settings, key=half.median)]
        best = whole.best.ratio
        return Land(
            whole.name, whole.space, draw, truth, best, single, null, seen=seen, priors=priors
        )

    quality = (float(statistics.median(counts)), -whole.noise)
    return Case(whole.name, null, land, quality, not null and _blurred(whole), split)


def _blurred(whole: Landscape) -> bool:
    """Whether the gain is too noisy to be shared out, judged by all settings that may be named.

    The best setting alone would not do. Other settings have slow launches where the best one had
    none by chance. With few runs, one half may have seen none of them, so that all are in the other
    half.
    """
    held = [whole.halves(seed)[1] for seed in range(_HALVES)]
    faster = [s for s in whole.settings if whole.median(s) < 1.0]
    values = np.array([[half[s] for s in faster] for half in held])
    if not np.isfinite(values).all():
        return True
    scatter = math.sqrt(float(np.log(values).var(axis=0).mean()))
    return scatter > -math.log(whole.best.ratio) / 2


def grid(seed: int, *, null: bool = False, noise: float = 0.03) -> Land:
    """A complete product of 3 to 6 parameters, at most 256 settings.

    One to three parameters have a gain. One level in six makes the program up to 16 times slower or
    fail; the rest costs little or nothing. Two parameters may interact.
    """
    rng = np.random.default_rng([407, seed])
    counts = _counts(rng)
    parameters = tuple(_parameter(f"p{i}", n, rng) for i, n in enumerate(counts))
    effects = [rng.choice([0, 0, 0.01, 0.04], n) * rng.uniform(0.5, 1.5, n) for n in counts]
    for effect in effects:
        effect[0] = 0.0
        cliffs = rng.random(len(effect)) < 1 / 6
        cliffs[0] = False
        effect[cliffs] = rng.choice([math.log(rng.uniform(1.3, 16)), math.inf], p=[0.8, 0.2])
    if not null:
        _add_gains(parameters, effects, rng)
    pair = np.zeros((counts[0], counts[1]))
    if rng.random() < 0.5:
        pair[1:, 1:] = rng.normal(0, 0.05, pair[1:, 1:].shape)
        if null:
            pair = np.abs(pair)
    space = Space(f"grid{seed}", parameters)
    return _exact(f"{'null' if null else 'grid'}-{seed}", space, _sum(space, effects, pair), noise)


def wide(seed: int, *, null: bool = False) -> Land:
    """25 parameters of which three matter; with so many settings only a formula gives OPUB."""
    known = mpi(seed, null=null)

    def draw(setting: Setting, rng: np.random.Generator) -> tuple[float, str]:
        ratio = known.measure(setting, rng)
        return (ratio, "ok") if math.isfinite(ratio) else (math.inf, "failed")

    single = min(map(known.ratio, _singles(known.space)))
    name = f"{'widenull' if null else 'wide'}-{seed}"
    return Land(name, known.space, draw, known.ratio, known.best, single, null)


def _counts(rng: np.random.Generator) -> list[int]:
    while True:
        counts: list[int] = rng.choice([2, 3, 4, 5, 6], int(rng.integers(3, 7))).tolist()
        if 48 <= math.prod(counts) <= _MOST:
            return counts


def _parameter(name: str, count: int, rng: np.random.Generator) -> Parameter:
    if count > 3 and rng.random() < 0.7:
        levels = tuple(1024 * 4**k for k in range(count))
        default = levels[int(rng.integers(count))]
        return Parameter(name, levels, default=default)
    return Parameter(name, tuple(f"word{k}" for k in range(1, count)))


def _add_gains(
    parameters: tuple[Parameter, ...], effects: list[np.ndarray], rng: np.random.Generator
) -> None:
    for place in rng.permutation(len(parameters))[: int(rng.integers(1, 4))].tolist():
        effect, gain = effects[place], rng.uniform(0.05, 0.35)
        top = int(rng.integers(1, len(effect)))
        if parameters[place].is_text:
            effect[top] = -gain
        else:
            # Levels of a size near the best one are good too.
            away = np.abs(np.arange(1, len(effect)) - top)
            good = np.where(np.isfinite(effect[1:]), effect[1:], 0) - gain * 0.6**away
            effect[1:] = np.where(away <= 1, good, effect[1:])


def _sum(space: Space, effects: list[np.ndarray], pair: np.ndarray) -> Callable[[Setting], float]:
    index = [{choice: k for k, choice in enumerate(p.choices)} for p in space.parameters]

    def ratio(setting: Setting) -> float:
        codes = [index[i][setting.get(p.name)] for i, p in enumerate(space.parameters)]
        log = sum(float(e[c]) for e, c in zip(effects, codes, strict=True))
        return math.exp(log + float(pair[codes[0], codes[1]]))

    return ratio


def _exact(name: str, space: Space, ratio: Callable[[Setting], float], noise: float) -> Land:
    truth = {setting: ratio(setting) for setting in space.enumerate()}

    def draw(setting: Setting, rng: np.random.Generator) -> tuple[float, str]:
        known = truth[setting]
        seen = known * math.exp(noise * rng.standard_normal())
        return (seen, "ok") if math.isfinite(known) else (math.inf, "failed")

    best = min(truth.values())
    single = min(truth[s] for s in truth if len(s) <= 1)
    return Land(name, space, draw, truth.__getitem__, best, single, best > _FASTER)


def _singles(space: Space) -> list[Setting]:
    named = ((p.name, choice) for p in space for choice in p.choices if choice is not None)
    return [Setting(), *(Setting({name: choice}) for name, choice in named)]
