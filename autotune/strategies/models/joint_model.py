"""The model of ``auto`` for a large space, in which it changes many parameters at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autotune.strategies.candidates import Climb
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats, Levels, Matrix
from autotune.strategies.models.additive import one_thread
from autotune.strategies.models.cliffs import CliffPrior, Cliffs
from autotune.strategies.models.estimates import most_telling, telling_logs
from autotune.strategies.models.sparse import Beliefs, Columns, SparseEffects

_STARTS = 3
"""Number of the best measured settings from which climbs start."""
_OWN = 0.3
"""Weight of a setting's own run in its estimate, relative to the effects of its levels."""
_REST = 1e-6
"""Weight of the mean in the expected improvement."""
_SURE = 2.0
"""A run slower than this multiple of a cliff's log ratio was hardly slow by chance."""


class JointModel:
    """Sparse effects of levels, and levels that are cliffs; the candidates are climbed to.

    ``clip`` is the log ratio above which a run shows a cliff. ``has_default``: the default is a
    setting of the space. ``rng`` returns the generator for a number of measured settings, so that
    the same settings give the same samples.
    """

    def __init__(
        self,
        codec: Codec,
        clip: float,
        rng: Callable[[int], np.random.Generator],
        *,
        has_default: bool,
    ) -> None:
        self._codec = codec
        self._clip = clip
        self._rng = rng
        self._has_default = has_default
        self._levels = Levels(codec)
        self._beliefs = Beliefs()
        self._columns = Columns(codec, self._levels, self._beliefs)
        self._climb = Climb(codec)
        self.fit({}, None)

    def fit(self, ratios: Mapping[Codes, float], scatter: tuple[float, float] | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed).

        ``scatter`` is the noise of the default's own runs: a variance of log times and its degrees
        of freedom.
        """
        with one_thread():
            self._fit(ratios, scatter or (0.0, 0.0))

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """New settings with large values of the acquisition function, and these values."""
        with one_thread():
            acquisition = self._acquisition()
            proposals = self._climb.candidates(self._starts(), acquisition, is_new)
            new = [codes for codes in proposals if is_new(codes)]
            if not new:
                return [], np.zeros(0)
            return new, acquisition.values(np.array(new, dtype=np.intp))

    def improvement(self, rows: Matrix) -> Floats:
        """The value of the acquisition function for each row of codes, shape (rows,)."""
        with one_thread():
            return self._acquisition().values(rows)

    def mean(self, rows: Matrix) -> Floats:
        """The expected log ratio of each row of codes, shape (rows,); ``clip`` for a cliff."""
        with one_thread():
            clear = np.exp(self._cliffs.clear(rows))
            return np.asarray(clear * self._effects.mean(rows) + (1.0 - clear) * self._clip)

    def ranking(self) -> tuple[list[Codes], Floats]:
        """The measured settings without cliffs by their estimates, best first, and the
        estimates."""
        order = np.argsort(self._estimates, kind="stable")
        return [tuple(self._codes[i].tolist()) for i in order], self._estimates[order]

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None if none is below the default's 0."""
        if not self._estimates.size:
            return None
        best = int(np.argmin(self._estimates))
        if self._has_default and self._estimates[best] >= 0:
            return None
        return tuple(self._codes[best].tolist())

    def _acquisition(self) -> SafeImprovement:
        best = float(self._estimates.min(initial=0.0 if self._has_default else np.inf))
        best = best if np.isfinite(best) else 0.0
        return SafeImprovement(self._levels, self._effects.samples, self._cliffs, best)

    def _fit(self, ratios: Mapping[Codes, float], scatter: tuple[float, float]) -> None:
        telling_ratios = most_telling(ratios)
        codes = np.array(list(telling_ratios), dtype=np.intp).reshape(
            len(telling_ratios), len(self._codec.sizes)
        )
        logs = np.log(np.array(list(telling_ratios.values()), dtype=np.float64))
        fell = logs > self._clip
        self._cliffs = Cliffs(self._levels, CliffPrior(), codes, fell, logs > _SURE * self._clip)
        # The size of a slowdown is irrelevant, so runs of cliffs are not used for the effects.
        codes, logs = codes[~fell], telling_logs(logs[~fell], self._clip)
        self._effects = SparseEffects(
            self._levels,
            self._columns,
            self._beliefs,
            codes,
            logs,
            self._rng(len(ratios)),
            (min(scatter[0], self._clip**2), scatter[1]),
        )
        means = self._effects.mean(codes)
        # Interactions of parameters appear in no effect of a level, only in the setting's own run.
        self._codes: Matrix = codes
        self._estimates: Floats = means + _OWN * (logs - means)

    def _starts(self) -> list[Codes]:
        """Starts of the climbs: the default and the settings with the best estimates."""
        order = np.argsort(self._estimates, kind="stable")[:_STARTS]
        return [(0,) * len(self._codec.sizes), *(tuple(self._codes[i].tolist()) for i in order)]


class SafeImprovement:
    """Expected improvement of the log ratio below ``best``, if no level is a cliff.

    It is the mean of max(best - log ratio, 0) over ``samples`` of the effects (samples, choices),
    times the probability that no level of the setting is a cliff. So unknown levels are changed
    together as far as the observed costs and cliffs allow.
    """

    def __init__(self, levels: Levels, samples: Floats, cliffs: Cliffs, best: float) -> None:
        self._levels, self._samples, self._cliffs, self._best = levels, samples, cliffs, best

    def values(self, codes: Matrix) -> Floats:
        """The value of each setting, shape (settings,)."""
        logs = self._samples @ self._levels.one_hot(codes).T
        return self._safe(logs, self._cliffs.clear(codes))

    def changes(self, codes: Codes) -> Floats:
        """The value of a setting after each change of one parameter, shape (choices,)."""
        levels, clear = self._levels, self._cliffs.log_clear
        places = levels.places(np.array(codes, dtype=np.intp))
        own = self._samples[:, places]
        logs = own.sum(axis=1)[:, None] - own[:, levels.owner] + self._samples
        safe = clear[places].sum() - clear[places][levels.owner] + clear
        return self._safe(logs, safe)

    def _safe(self, logs: Floats, clear: Floats) -> Floats:
        gains = np.maximum(self._best - logs, 0.0).mean(axis=0)
        # If no sample improves, the mean decides.
        gains += _REST * np.exp(self._best - logs.mean(axis=0))
        return np.asarray(gains * np.exp(clear), dtype=np.float64)
