"""Importance: which parameters explain the run times of the measured settings.

A random forest is fitted to the measured settings. Each parameter has three figures, because each
of them misses something: the share of the variance that the parameter explains alone and in pairs
(fANOVA), the loss of accuracy on unseen settings if the parameter is shuffled (permutation
importance), and correlations as in the thesis.

:func:`study_evidence` reads the results of a study's proof and read-back on single parameters. A
forest over the runs of a search sees which settings were fast, not which parameters made them fast.
The proof does: each parameter of a proven and pruned setting was shown to matter.

:func:`parts_of` is the functional analysis of variance of a forest. A tree cuts the grid of levels
into boxes with one value each, so the mean over all other parameters is an exact sum over boxes
(after Hutter, Hoos and Leyton-Brown 2014). All levels of a parameter are equally likely.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.anova.mixed import subtract_cell_means
from autotune.anova.oneway import Values, respond
from autotune.anova.table import RunTable, numeric
from autotune.errors import WorkError
from autotune.notes import Note
from autotune.space import Setting
from autotune.store import Store, StudyRecord
from autotune.study.search_result import Result

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestRegressor


TREES = 100
FOLDS = 5
SHUFFLES = 10
LEAST = 15
"""Smallest number of settings from which importance is computed."""
MOST_ROWS = 4000
"""With more rows the forest is fitted to a random part of this size."""
LEAST_R2 = 0.1
"""Below this R2 on unseen settings the forest predicts nothing, and a note says so."""
MOST_IN_PAIRS = 8
"""Pairs are computed among this many of the most important parameters."""


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ParameterImportance:
    """The importance of one parameter.  Shares are of the variance; ``lo``/``hi`` are 95 %
    intervals.

    ``alone``: the share that the parameter explains alone (fANOVA), over the trees. ``shuffled``:
    half the loss of R2 on unseen settings if the parameter is shuffled: the share that it explains
    alone and with others, over folds. ``pearson``/``spearman``: correlation of the numeric value
    with the response, None for words. ``certain``: the interval of ``shuffled`` is above 0, or
    ``proven``: the proof of the study showed that the parameter matters.
    """

    name: str
    alone: float
    alone_lo: float
    alone_hi: float
    shuffled: float
    shuffled_lo: float
    shuffled_hi: float
    pearson: float | None
    spearman: float | None
    proven: bool = False

    @property
    def certain(self) -> bool:
        return self.proven or self.shuffled_lo > 0


@dataclass(frozen=True)
class PairImportance:
    """The interaction of two parameters: its share of the variance with a 95 % interval."""

    first: str
    second: str
    share: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Importance:
    """``r2``: of the forest on settings that it has not seen.  ``parameters``: the proven ones
    first, then by importance."""

    parameters: tuple[ParameterImportance, ...]
    pairs: tuple[PairImportance, ...]
    r2: float
    rows: int
    notes: tuple[Note, ...]


def importance(table: RunTable, seed: int = 0, proven_names: Collection[str] = ()) -> Importance:
    """Judge every parameter on log(T_default / T).

    ``proven_names`` are parameters that a proof showed to matter, regardless of the forest. Raises
    WorkError for too few settings, or if all settings took the same time.
    """
    values = respond(table, "log")
    settings = len(np.unique(table.units))
    if settings < LEAST:
        raise WorkError(
            f"{table.origin} has {settings} settings; at least {LEAST} are needed to "
            "estimate importance: search or explore more",
            code="dataset.too_small",
        )
    values = _some(values, seed)
    table = values.table
    y = subtract_cell_means(values)
    levels = [len(texts) for texts in table.levels.values()]
    losses, r2 = _shuffle_losses(table, y, seed)
    forest = _forest(seed).fit(table.factors, y)
    order = np.argsort(-losses.mean(axis=0))
    parts = parts_of(forest, levels, [int(i) for i in order[:MOST_IN_PAIRS]])
    if not parts:
        raise WorkError(
            f"{table.origin}: every setting took the same time; no parameter matters",
            code="dataset.no_effect",
        )
    matters = [_matter(table, y, parts, losses, i) for i in range(len(levels))]
    matters = [replace(m, proven=m.name in proven_names) for m in matters]
    matters.sort(key=lambda m: (-m.proven, -m.shuffled, -m.alone))
    return Importance(tuple(matters), _pairs(table, parts), r2, len(y), tuple(_notes(r2)))


def _forest(seed: int) -> RandomForestRegressor:
    from sklearn.ensemble import RandomForestRegressor  # a second to import, and rarely needed

    return RandomForestRegressor(
        n_estimators=TREES, min_samples_leaf=3, max_features=0.5, random_state=seed
    )


def _some(values: Values, seed: int) -> Values:
    if len(values.y) <= MOST_ROWS:
        return values
    sample = np.sort(np.random.default_rng(seed).choice(len(values.y), MOST_ROWS, replace=False))
    table = values.table
    rows = table.rows.iloc[sample].reset_index(drop=True)
    part = replace(table, rows=rows, factors=table.factors[sample])
    return replace(values, table=part, y=values.y[sample])


def _shuffle_losses(table: RunTable, y: Floats, seed: int) -> tuple[Floats, float]:
    """Losses of R2, shape (folds, parameters), and R2 itself; folds share no setting."""
    from sklearn.model_selection import GroupKFold

    rng = np.random.default_rng(seed)
    x, total = table.factors, float(((y - y.mean()) ** 2).mean()) or 1.0
    folds = GroupKFold(n_splits=FOLDS)
    losses, errors = np.zeros((FOLDS, x.shape[1])), []
    for number, (training, unseen) in enumerate(folds.split(x, y, table.units)):
        forest = _forest(seed + number).fit(x[training], y[training])
        base = float(((forest.predict(x[unseen]) - y[unseen]) ** 2).mean())
        errors.append(base)
        for p in range(x.shape[1]):
            copies = np.repeat(x[unseen][None], SHUFFLES, axis=0)
            for copy in copies:
                copy[:, p] = rng.permutation(copy[:, p])
            predictions = forest.predict(copies.reshape(-1, x.shape[1])).reshape(SHUFFLES, -1)
            loss = float(((predictions - y[unseen]) ** 2).mean()) - base
            # Shuffling counts twice: the part of the right value is lost, and that of a wrong one
            # is added.
            losses[number, p] = loss / 2 / total
    return losses, 1 - float(np.mean(errors)) / total


def _matter(
    table: RunTable, y: Floats, parts: Sequence[Parts], losses: Floats, i: int
) -> ParameterImportance:
    from scipy import stats

    name = table.names[i]
    own_shares = np.array([part.alone[i] for part in parts])
    loss = losses[:, i]
    # The training parts of the folds overlap, so their scatter is widened (Nadeau and Bengio 2003).
    wide = math.sqrt(1 / FOLDS + 1 / (FOLDS - 1)) * float(loss.std(ddof=1))
    reach = float(stats.t.isf(0.025, FOLDS - 1)) * wide
    low, high = np.quantile(own_shares, [0.025, 0.975])
    pearson, spearman = _correlations(numeric(table, name), y)
    middle = float(loss.mean())
    return ParameterImportance(
        name,
        float(own_shares.mean()),
        float(low),
        float(high),
        middle,
        middle - reach,
        middle + reach,
        pearson,
        spearman,
    )


def _correlations(x: Floats, y: Floats) -> tuple[float | None, float | None]:
    """Pearson and Spearman correlation over the numeric rows; None if too few or all equal."""
    from scipy import stats

    is_number = np.isfinite(x)
    if is_number.sum() < LEAST or np.ptp(x[is_number]) == 0 or np.ptp(y[is_number]) == 0:
        return None, None
    pearson = float(stats.pearsonr(x[is_number], y[is_number]).statistic)
    return pearson, float(stats.spearmanr(x[is_number], y[is_number]).statistic)


def _pairs(table: RunTable, parts: Sequence[Parts]) -> tuple[PairImportance, ...]:
    pairs = []
    for (a, b), _ in sorted(parts[0].pairs.items()):
        shares = np.array([part.pairs[a, b] for part in parts])
        low, high = np.quantile(shares, [0.025, 0.975])
        names = table.names[a], table.names[b]
        pairs.append(PairImportance(*names, float(shares.mean()), float(low), float(high)))
    return tuple(sorted(pairs, key=lambda pair: -pair.share))


def _notes(r2: float) -> list[Note]:
    if r2 >= LEAST_R2:
        return []
    return [
        Note(
            "importance.unexplained",
            f"the random forest explains {max(r2, 0):.0%} of the variance of settings that "
            "it was not trained on: nothing matters here, or there are too few settings; "
            "the order below means nothing",
            {"r2": r2},
        )
    ]


@dataclass(frozen=True)
class NeighbourSetting:
    """A setting that differs from the best one in one parameter, which has the level ``level``.

    ``ratio`` is T / T_default: measured if ``measured``, else predicted by the forest.  ``here``:
    the level is that of the best setting itself.
    """

    parameter: str
    level: str
    ratio: float
    measured: bool
    here: bool


def around_best(
    table: RunTable, cell: str, names: Sequence[str], seed: int = 0
) -> list[NeighbourSetting]:
    """The effect of changing each single parameter of the best setting of a cell."""
    part = table.where(lambda place: place.key == cell)
    values = respond(part, "log")
    forest = _forest(seed).fit(part.factors, values.y)
    ratios = part.rows["ratio"].to_numpy(dtype=float)
    best = int(np.argmin(np.where(part.rows["ok"].to_numpy(dtype=bool), ratios, np.inf)))
    ratios_by_codes = {
        tuple(codes): ratio for codes, ratio in zip(part.factors, ratios, strict=True)
    }
    neighbours = []
    for name in names:
        at = part.names.index(name)
        for number, text in enumerate(part.levels[name]):
            codes = part.factors[best].copy()
            codes[at] = number
            ratio = ratios_by_codes.get(tuple(codes))
            guess = (
                math.exp(-float(forest.predict(codes[None])[0])) if ratio is None else float(ratio)
            )
            is_best = number == int(part.factors[best][at])
            neighbours.append(NeighbourSetting(name, text, guess, ratio is not None, is_best))
    return neighbours


def best_cells(table: RunTable, limit: int) -> list[str]:
    """The cells with the largest possible gain, largest first; the first cells if all are null."""
    order = sorted(table.cells, key=lambda key: -table.best[key].gain)
    return list(itertools.islice(order, limit))


_COMPLETE_STATES = ("slim", "pruned")
"""States of a pruning that showed each remaining parameter to matter."""


@dataclass(frozen=True)
class ParameterEvidence:
    """The results of a study on single parameters.

    ``proven``: parameters that the proof showed to matter. ``taken_out``: parameters that pruning
    removed from the proven setting, which is not slower without them. ``unused``: parameters read
    back as inactive in every run with them. ``gain`` of the proven setting, as a fraction.
    """

    proven: tuple[str, ...] = ()
    taken_out: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    gain: float | None = None


def study_evidence(store: Store, study: StudyRecord) -> ParameterEvidence:
    """The evidence of a search; only ``inactive`` is filled for a study without a proof.

    Raises WorkError if the stored result is damaged.
    """
    inactive = _inactive_names(store, study)
    if study.result is None or "recommended" not in study.result:
        return ParameterEvidence(unused=inactive)
    result = Result.from_json(study.result)
    if result.status != "recommended" or not study.key.has_guard:
        return ParameterEvidence(unused=inactive)
    names, pruning = tuple(result.recommended), result.pruning
    whole = () if pruning is None else tuple(Setting(pruning["whole"]))
    without = () if pruning is not None and pruning["non_inferior"] is False else whole
    is_proof_complete = len(names) == 1 or (
        pruning is not None and pruning["state"] in _COMPLETE_STATES
    )
    return ParameterEvidence(
        proven=names if is_proof_complete else (),
        taken_out=tuple(name for name in without if name not in names),
        unused=tuple(name for name in inactive if name not in names),
        gain=result.gain,
    )


def _inactive_names(store: Store, study: StudyRecord) -> tuple[str, ...]:
    states = store.read_back_states(study.id)
    return tuple(sorted(name for name, seen in states.items() if seen == {"inactive"}))


Ints = NDArray[np.int_]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Parts:
    """Shares of the variance of a tree's predictions.

    ``alone``: shape (parameters,).  ``pairs``: the share of each pair's interaction.
    """

    alone: Floats
    pairs: dict[tuple[int, int], float]


@dataclass(frozen=True)
class _Boxes:
    """Leaves of a tree. ``inside[p]``: shape (leaves, levels of p), True if a leaf has a level."""

    values: Floats
    shares: Floats
    inside: list[Bools]

    def marginal(self, *parameters: int) -> Floats:
        """Mean prediction for every combination of levels of one or two parameters."""
        weight = self.values * self.shares
        for p in parameters:
            weight = weight / self.inside[p].mean(axis=1)
        if len(parameters) == 1:
            return np.asarray(weight @ self.inside[parameters[0]], dtype=np.float64)
        first, second = (self.inside[p].astype(np.float64) for p in parameters)
        return np.asarray((first * weight[:, None]).T @ second, dtype=np.float64)


def parts_of(
    forest: RandomForestRegressor, levels: Sequence[int], pairs_of: Sequence[int]
) -> list[Parts]:
    """Shares for each tree; constant trees are left out.

    ``levels``: number of levels of every parameter, coded from 0 as in the training of the forest.
    Pairs are computed among ``pairs_of`` only, because their number grows with the square.
    """
    parts = []
    for estimator in forest.estimators_:
        boxes = _boxes(estimator.tree_, levels)
        mean = float(boxes.values @ boxes.shares)
        total = float((boxes.values - mean) ** 2 @ boxes.shares)
        if total > 0:
            parts.append(_parts(boxes, mean, total, len(levels), pairs_of))
    return parts


def _parts(boxes: _Boxes, mean: float, total: float, count: int, pairs_of: Sequence[int]) -> Parts:
    main_effects = {p: boxes.marginal(p) - mean for p in range(count)}
    shares = np.array([float((main_effects[p] ** 2).mean()) / total for p in range(count)])
    pairs = {}
    for a, b in itertools.combinations(sorted(pairs_of), 2):
        joint = boxes.marginal(a, b) - mean - main_effects[a][:, None] - main_effects[b][None, :]
        pairs[a, b] = float((joint**2).mean()) / total
    return Parts(shares, pairs)


def _boxes(tree: object, levels: Sequence[int]) -> _Boxes:
    """The leaves of a tree, each with the levels of every parameter that lead to it."""
    left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
    feature, threshold = tree.feature, tree.threshold  # type: ignore[attr-defined]
    value = tree.value[:, 0, 0]  # type: ignore[attr-defined]
    rows: list[tuple[float, list[Bools]]] = []
    waiting: list[tuple[int, list[Bools]]] = [(0, [np.ones(n, dtype=bool) for n in levels])]
    while waiting:
        node, inside = waiting.pop()
        if left[node] == right[node]:
            rows.append((float(value[node]), inside))
            continue
        p = int(feature[node])
        low = np.arange(levels[p]) <= threshold[node]
        for child, part in ((left[node], low), (right[node], ~low)):
            cut = inside[p] & part
            # A cut outside the remaining levels makes an empty box, which no setting reaches.
            if cut.any():
                waiting.append((int(child), [*inside[:p], cut, *inside[p + 1 :]]))
    values = np.array([v for v, _ in rows])
    inside_of = [np.array([inside[p] for _, inside in rows]) for p in range(len(levels))]
    shares = np.prod([is_inside.mean(axis=1) for is_inside in inside_of], axis=0)
    return _Boxes(values, np.asarray(shares, dtype=np.float64), inside_of)
