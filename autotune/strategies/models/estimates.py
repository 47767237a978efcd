"""Measured settings and the surrogate fitted to them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats, Matrix
from autotune.strategies.models.additive import Additive, Kernel, Prior, expected_improvement

_MOST = 150
"""Largest number of settings in the fit: the best of them and the latest."""
_REACH = 5.0
"""Runs further above the best one than this multiple of the largest loss count as that far."""
_LARGEST_GAIN = 20.0
"""A gain counts up to this multiple of the largest loss: no program is 400 times faster."""


class Estimates:
    """The surrogate of a search: it receives ratios one by one and is fitted on demand.

    ``clip`` is the log ratio assigned to everything slower, including failures. ``has_default``:
    the default is a setting of the space, so that the best estimate is at most its 0.
    """

    def __init__(self, codec: Codec, belief: Prior, clip: float, *, has_default: bool) -> None:
        self._codec = codec
        self._belief = belief
        self._kernel = Kernel(codec, belief.correlation)
        self._clip = clip
        self._has_default = has_default
        self._ratios: dict[Codes, float] = {}
        self._scatter = (0.0, 0.0)
        self._additive: Additive | None = None
        self._codes: Matrix = np.zeros((0, len(codec.sizes)), dtype=np.intp)
        self._bad = np.zeros(0, dtype=bool)
        """Which of these failed or were slower than a loss is counted."""
        self._means: Floats = np.zeros(0)

    def fit(self, ratios: Mapping[Codes, float], scatter: tuple[float, float] | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed).

        ``scatter`` is the noise of the default's own runs: a variance of log times and its degrees
        of freedom.
        """
        self._ratios = dict(ratios)
        self._scatter = (0.0, 0.0)
        if scatter is not None:
            self._scatter = (min(scatter[0], self._clip**2), scatter[1])
        self._additive = None

    def improvement(self, rows: Matrix) -> Floats:
        """Expected improvement of the log ratio over the best estimate, shape (rows,)."""
        model = self._model()
        lowest = float(self._means.min(initial=0.0 if self._has_default else math.inf))
        best = lowest if math.isfinite(lowest) else 0.0
        return expected_improvement(*model.predict(rows), best)

    def mean(self, rows: Matrix) -> Floats:
        """The estimated log ratio of each row of codes, shape (rows,)."""
        return self._model().mean(rows)

    def ranking(self) -> tuple[list[Codes], Floats]:
        """The measured settings by their estimates, the best first, and these estimates."""
        self._model()
        order = np.argsort(self._means, kind="stable")
        return [tuple(self._codes[i].tolist()) for i in order], self._means[order]

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None if none is below the default's 0."""
        self._model()
        good = np.flatnonzero(~self._bad)
        if not good.size:
            return None
        place = int(good[np.argmin(self._means[good])])
        if self._has_default and self._means[place] >= 0:
            return None
        return tuple(self._codes[place].tolist())

    def _model(self) -> Additive:
        if self._additive is None:
            telling_ratios = most_telling(self._ratios)
            shape = (len(telling_ratios), len(self._codec.sizes))
            self._codes = np.array(list(telling_ratios), dtype=np.intp).reshape(shape)
            logs = np.log(np.array(list(telling_ratios.values())))
            self._bad = logs >= self._clip
            self._additive = Additive(
                *(self._kernel, self._belief, self._codes),
                telling_logs(logs, self._clip),
                self._scatter,
            )
            self._means = self._additive.mean(self._codes)
        return self._additive


def telling_logs(logs: Floats, clip: float) -> Floats:
    """Log ratios for the fit: at most ``clip``, and not far above the best one.

    If the default is several times slower than the best, only runs near the best matter.
    """
    best = max(float(logs.min(initial=0.0)), -_LARGEST_GAIN * clip)
    return np.clip(logs, best, min(clip, best + _REACH * clip))


def most_telling(ratios: Mapping[Codes, float]) -> Mapping[Codes, float]:
    """The ratios used in a fit: all, or if there are many, the best and the latest."""
    if len(ratios) <= _MOST:
        return ratios
    latest = list(ratios)[-_MOST // 3 :]
    best = sorted(ratios, key=ratios.__getitem__)[: _MOST - len(latest)]
    selection = {*latest, *best}
    return {codes: ratio for codes, ratio in ratios.items() if codes in selection}
