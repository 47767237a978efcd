"""Effects of single levels, estimated from all settings of a search together.

The log ratio of a setting is modelled as the sum of one effect per level that it has, and noise.
Most levels do nothing, so the fit is sparse: a level gets an effect only if this raises the
marginal likelihood by more than a selection among all levels would by chance. The fit only proposes
the active parameters of a setting; interleaved runs decide.

Source: Tipping and Faul, *Fast marginal likelihood maximisation for sparse Bayesian models*
(AISTATS 2003).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import median

import numpy as np

from autotune.stats.exact import Floats

Level = tuple[str, Hashable]
"""Name of a parameter, and its value."""

_CLIP = 0.5
"""Log ratio assigned to everything slower, including failed and stopped runs."""
_EVIDENCE = 2.0
"""Log marginal likelihood that an effect must add.

Noise alone adds this much to one level in 50.
"""
_TAIL = 4.0
"""Degrees of freedom of Student's t of the noise: one slow launch must not make an effect."""
_REWEIGHTINGS = 3
_STEPS = 200
_QUIETEST = 1e-3
"""Lower bound of the assumed noise: below it, the ratio of an effect to noise has no digits
left."""
_REFERENCE = 0.25
"""Share of the noise variance of one run that the default's level adds to each setting."""


def level_effects(
    settings: Sequence[Mapping[str, Hashable]], ratios: Sequence[Sequence[float]], noise: float
) -> dict[Level, float]:
    """Mean effect of each active level, as a log ratio (negative: faster).

    ``ratios``: T / T_default of each setting's runs; a setting without runs is left out. ``noise``:
    standard deviation of one run's log ratio. Levels not in the result are considered inactive.
    """
    measurements = [(s, r) for s, r in zip(settings, ratios, strict=True) if r]
    levels = list(dict.fromkeys(level for s, _ in measurements for level in s.items()))
    if not levels:
        return {}
    column = {level: i for i, level in enumerate(levels)}
    has = np.zeros((len(measurements), len(levels)))
    for row, (setting, _) in enumerate(measurements):
        has[row, [column[level] for level in setting.items()]] = 1.0
    logs = np.array([min(math.log(median(r)), _CLIP) for _, r in measurements])
    variance = max(noise, _QUIETEST) ** 2 * (
        _REFERENCE + 1 / np.array([len(r) for _, r in measurements])
    )
    weights = np.ones(len(measurements))
    for _ in range(_REWEIGHTINGS):
        acting, means = _sparse(has, logs, weights / variance)
        rest = logs - has[:, acting] @ means
        weights = (_TAIL + 1) / (_TAIL + rest**2 / variance)
    return {levels[i]: float(mean) for i, mean in zip(acting, means, strict=True)}


def _sparse(has: Floats, logs: Floats, weights: Floats) -> tuple[list[int], Floats]:
    """Columns with an effect and their posterior means, by single steps of the largest evidence.

    ``has``: shape (settings, levels), 1 where a setting has a level. ``logs``, ``weights``: shape
    (settings,).
    """
    precision: dict[int, float] = {}
    weighted_levels = has * weights[:, None]
    own, toward = np.einsum("ij,ij->j", has, weighted_levels), weighted_levels.T @ logs
    for step_number in range(_STEPS + 1):
        active = list(precision)
        inner = has[:, active]
        cross = weighted_levels.T @ inner
        inverse = np.linalg.inv(np.diag([precision[i] for i in active]) + cross[active])
        means = inverse @ toward[active]
        if step_number == _STEPS:
            break  # The means are those of the levels after the last step.
        rest = own - np.einsum("ij,ij->i", cross @ inverse, cross)
        pull = toward - cross @ means
        variances = dict(zip(active, np.diag(inverse).tolist(), strict=True))
        step = _best_step(precision, variances, rest, pull)
        if step is None:
            break
        index, value = step
        if value is None:
            del precision[index]
        else:
            precision[index] = value
    return active, means


_FLAT = 1e-9
"""Smallest prior precision of an effect. Flatter priors add no information and overflow."""


def _best_step(
    precision: Mapping[int, float], variances: Mapping[int, float], rest: Floats, pull: Floats
) -> tuple[int, float | None] | None:
    """The change of one level's prior precision that adds most evidence; None if none adds any.

    A precision of None leaves the level out. ``variances``: posterior variances of the levels with
    a precision. ``rest`` and ``pull`` are S and Q of the source; for levels with a precision, ``1 -
    S / precision`` is computed as precision times variance, because the difference cancels if the
    noise is small.
    """
    best, most = None, 1e-3
    for i in range(rest.size):
        s, q = float(rest[i]), float(pull[i])
        a = precision.get(i)
        if a is None:
            own_s, own_q, left = s, q, 1.0
        else:
            left = a * variances[i]
            own_s, own_q = 1 / variances[i] - a, q / left
        over = own_q * own_q - own_s
        new = max(own_s**2 / over, _FLAT) if over > 0 and own_s > 0 else None
        if a is None:
            if new is None:
                continue
            evidence_gain = ((q**2 - s) / s + math.log(s / q**2)) / 2 - _EVIDENCE
        elif new is None:
            evidence_gain = (-(q**2) / (a * left) - math.log(left)) / 2 + _EVIDENCE
        else:
            # One plus S times the change of the prior variance.
            growth = left + own_s * left / new
            change = 1 / new - 1 / a
            if abs(growth - 1) < 1e-6:
                continue
            evidence_gain = (q**2 * change / growth - math.log(growth)) / 2
        if evidence_gain > most:
            best, most = (i, new), evidence_gain
    return best
