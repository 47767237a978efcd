"""The model of a space in which what a parameter does depends on the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from autotune.errors import UsageError
from autotune.space import DEFAULT
from autotune.strategies.candidates import Listing
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats, Matrix
from autotune.strategies.models.additive import expected_improvement, one_thread
from autotune.strategies.models.estimates import most_telling
from autotune.strategies.models.gaussian_process import Coordinates, ProductProcess, SmoothPrior

_POOL = 1500
"""Random settings of a large space that are candidates of every proposal."""
_BEST = 5
"""Number of the best measured settings whose neighbours are candidates."""
_JUMPS = 30
"""Changes of two parameters at once that are tried from each of these."""
_STEPS, _BRANCHES = 3, 2
"""Steps of the climb from the best candidates, and settings from which each goes on."""
_REACH = 1.2
"""Log ratio above the best run up to which a slower run counts in full."""
_TRUST = 10.0
"""Weight of its own deviations, in predicted runs."""
_LARGEST_SCORE = 25.0
"""A squared standard score counts up to this."""
_REFITS = 1.1
"""The length scales are fitted anew when there are this many times the runs of the last fit."""
_EVERY = 20
"""Up to this number of runs they are fitted after each run."""


class InteractionModel:
    """A Gaussian process; the candidates are random settings and the neighbours of the best.

    ``listing`` has every setting of a small space. ``rng`` returns the generator for a number of
    measured settings. It has the methods of
    :class:`~autotune.strategies.models.joint_model.JointModel`.
    """

    def __init__(
        self,
        codec: Codec,
        listing: Listing | None,
        rng: Callable[[int], np.random.Generator],
        prior: SmoothPrior | None = None,
    ) -> None:
        self._codec, self._listing, self._rng = codec, listing, rng
        self._prior = prior or SmoothPrior()
        self._coordinates = Coordinates(codec)
        default = codec.encode(DEFAULT) if codec.space.is_valid(DEFAULT) else None
        self._default = default
        self._pool = listing
        self._ratios: dict[Codes, float] = {}
        self._rows: Matrix = np.zeros((0, len(codec.sizes)), dtype=np.intp)
        self._logs: Floats = np.zeros(0)
        self._means: Floats = np.zeros(0)
        self._runs_ok = np.zeros(0, dtype=bool)
        self._process: ProductProcess | None = None
        """None as long as nothing is known, not even the default."""
        self._fitted_to: tuple[list[tuple[Codes, float]], tuple[float, float]] | None = None
        self._fitted_theta: Floats = np.zeros(0)
        self._widening = 1.0

    def fit(self, ratios: Mapping[Codes, float], scatter: tuple[float, float] | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed), in their order."""
        own_noise = scatter or (0.0, 0.0)
        runs = list(ratios.items())
        self._ratios = dict(ratios)
        self._rows, self._logs = self._data(runs)
        self._runs_ok = np.isfinite(self._logs)
        self._process, self._means = None, np.zeros(0)
        if len(self._rows):
            with one_thread():
                theta = self._theta(runs[: _fitted_with(len(runs))], own_noise)
                self._process = self._posterior(runs, own_noise, theta)
                self._means = self._process.predict(self._rows)[0]

    def _theta(self, runs: Sequence[tuple[Codes, float]], scatter: tuple[float, float]) -> Floats:
        """The length scales and the noise, fitted to ``runs``; kept until these change."""
        if self._fitted_to != (runs, scatter):
            self._fitted_to = (list(runs), scatter)
            self._fitted_theta = self._posterior(runs, scatter).theta
        return self._fitted_theta

    def predict(self, rows: Matrix) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each true log ratio, both of shape (rows,)."""
        assert self._process is not None
        with one_thread():
            return self._process.predict(rows)

    def mean(self, rows: Matrix) -> Floats:
        """The estimated log ratio of each row of codes, shape (rows,)."""
        return self.predict(rows)[0]

    @property
    def evidence(self) -> float:
        """The log odds of this model against noise alone; 0 as long as no run is known."""
        if self._process is None:
            return 0.0
        with one_thread():
            return self._process.evidence

    def improvement(self, rows: Matrix) -> Floats:
        """Expected improvement of the log ratio over the best estimate, shape (rows,)."""
        if self._process is None:
            return np.zeros(len(rows))
        mean, deviation = self.predict(rows)
        return expected_improvement(mean, self._widening * deviation, float(self._means.min()))

    def surprise(self, rows: Matrix, logs: Floats) -> float:
        """How far measured ``logs`` (rows,) are off: the sum of their squared standard scores."""
        assert self._process is not None
        mean, deviation = self.predict(rows)
        most = float(bounded(np.append(self._logs, logs)).max())
        off = np.minimum(logs, most) - np.minimum(mean, most)
        scores = off**2 / (deviation**2 + self._process.noise**2)
        return float(np.minimum(scores, _LARGEST_SCORE).sum())

    def calibrate(self, surprise: float, runs: int) -> None:
        """Widen all deviations by what ``surprise`` says of predictions for so many ``runs``."""
        share = (_TRUST + surprise) / (_TRUST + runs)
        self._widening = math.sqrt(max(share, 1.0))

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """New settings with large expected improvement, and the improvement of each."""
        values: dict[Codes, float] = {}
        self._score(self._settings(), is_new, values)
        if self._listing is None:
            rng = self._rng(len(self._ratios))
            for place in np.argsort(self._means, kind="stable")[:_BEST].tolist():
                codes = tuple(self._rows[place].tolist())
                self._score([*self._changed(codes), *self._jumps(codes, rng)], is_new, values)
            for _ in range(_STEPS):
                known = len(values)
                for codes in sorted(values, key=lambda c: -values[c])[:_BRANCHES]:
                    self._score(self._changed(codes), is_new, values)
                if len(values) == known:
                    break
        return list(values), np.array(list(values.values()))

    def ranking(self) -> tuple[list[Codes], Floats]:
        """The measured settings by their estimates, the best first, and these estimates."""
        order = np.argsort(self._means, kind="stable")
        return [tuple(self._rows[i].tolist()) for i in order], self._means[order]

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None if that is the default."""
        if not self._runs_ok.any():
            return None
        place = int(np.argmin(np.where(self._runs_ok, self._means, np.inf)))
        codes: Codes = tuple(self._rows[place].tolist())
        return None if codes == self._default else codes

    def _posterior(
        self,
        known: Sequence[tuple[Codes, float]],
        scatter: tuple[float, float],
        theta: Floats | None = None,
    ) -> ProductProcess:
        rows, logs = self._data(known)
        return ProductProcess(self._coordinates, self._prior, rows, bounded(logs), scatter, theta)

    def _data(self, known: Sequence[tuple[Codes, float]]) -> tuple[Matrix, Floats]:
        """The codes of the settings in the fit and their log ratios; the default's is 0."""
        ratios = dict(most_telling(dict(known)))
        if self._default is not None:
            ratios = {self._default: 1.0, **ratios}
        rows = np.array(list(ratios), dtype=np.intp).reshape(len(ratios), len(self._codec.sizes))
        return rows, np.log(np.array(list(ratios.values()), dtype=np.float64))

    def _score(
        self,
        settings: Sequence[Codes],
        is_new: Callable[[Codes], bool],
        values: dict[Codes, float],
    ) -> None:
        new = [codes for codes in dict.fromkeys(settings) if codes not in values and is_new(codes)]
        if new:
            worth = self.improvement(np.array(new, dtype=np.intp))
            values.update(zip(new, worth.tolist(), strict=True))

    def _settings(self) -> list[Codes]:
        """Every setting of a small space; the same random ones of a large space."""
        if self._pool is None:
            rng = self._rng(0)
            drawn: dict[Codes, None] = {}
            # Where valid settings are rare, only changes of measured ones find them.
            with suppress(UsageError):
                for _ in range(_POOL):
                    codes = self._codec.encode(self._codec.space.sample(rng))
                    if codes is not None:
                        drawn[codes] = None
            self._pool = Listing(self._codec, list(drawn))
        return self._pool.settings()

    def _changed(self, codes: Codes) -> list[Codes]:
        """The valid settings that differ in one parameter."""
        changed = [
            (*codes[:place], code, *codes[place + 1 :])
            for place, size in enumerate(self._codec.sizes.tolist())
            for code in range(size)
            if code != codes[place]
        ]
        return self._valid(changed)

    def _jumps(self, codes: Codes, rng: np.random.Generator) -> list[Codes]:
        """Valid settings that differ in two random parameters."""
        count = min(2, len(codes))
        jumps = []
        for _ in range(_JUMPS):
            jump = list(codes)
            for place in rng.choice(len(codes), count, replace=False).tolist():
                jump[place] = int(rng.integers(self._codec.sizes[place]))
            jumps.append(tuple(jump))
        return self._valid(jumps)

    def _valid(self, settings: Sequence[Codes]) -> list[Codes]:
        valid = [codes for codes in settings if self._codec.is_canonical(codes)]
        if not self._codec.idle:
            return valid
        settled = (self._codec.settle_codes(codes) for codes in valid)
        return [codes for codes in settled if codes is not None]


def bounded(logs: Floats) -> Floats:
    """Log ratios for the fit: failures and far slower runs count like the slow half of the others.

    A minimum is sought, so it matters little how slow a slow setting is.
    """
    finite = logs[np.isfinite(logs)]
    if not finite.size:
        return np.zeros_like(logs)
    best, middle = float(finite.min()), float(np.median(finite))
    most = min(max(best + _REACH, middle + (middle - best) / 2), float(finite.max()))
    return np.minimum(logs, most)


def _fitted_with(count: int) -> int:
    """The number of runs with which the length scales were fitted last."""
    if count <= _EVERY:
        return count
    steps = math.floor(math.log(count / _EVERY) / math.log(_REFITS))
    return min(int(_EVERY * _REFITS**steps), count)
