"""Two models of one search: effects that add up, and effects that depend on each other.

Which of them describes the space is judged by what both predicted. At a few numbers of runs both
are fitted, and each later run, up to the next of these numbers, is compared with what they expected
of it. What is known before any run is who reads the parameters: those of a library mostly add up,
those of a program (ranks, workers, blocks, chunks) divide one and the same work. The size of a
space decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autotune.space import DEFAULT, Space
from autotune.strategies.candidates import listing
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats, Matrix
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.estimates import telling_logs
from autotune.strategies.models.interaction_model import InteractionModel
from autotune.strategies.models.joint_model import JointModel
from autotune.strategies.models.listed_model import ListedModel

Scatter = tuple[float, float]
Runs = list[tuple[Codes, float]]
"""Measured settings with their ratios to the default (infinite: failed), in their order."""

_OF_LIBRARY, _OF_PROGRAM = 0.02, 0.9
"""Probability, before anything is measured, that effects depend on each other."""
_STARTS = 5
"""Balanced settings at the beginning of a search, if all parameters are a program's own."""
_FIRST, _GROWTH = 4, 1.5
"""Runs before the first prediction; both are fitted anew at this multiple of them, and so on."""
_NOISE, _NOISE_WEIGHT = 0.04, 3.0
"""An error (a log ratio) that says nothing of a model, and its weight in runs before any run."""
_RUNS_AS_ONE = 2.0
"""Runs that count as one independent prediction: neighbouring runs are surprises together."""
_PERSISTENCE = 4
"""Where effects depend on each other, good settings lie apart: so many times as many proposals in
vain end a search, once the runs show that there are effects."""
_EVIDENCE = 5.0
"""Log odds of the second model against noise alone that show this."""


class Model(Protocol):
    """A model of the log ratios of settings."""

    def fit(self, ratios: Mapping[Codes, float], scatter: Scatter | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed)."""

    def mean(self, rows: Matrix) -> Floats:
        """The estimated log ratio of each row of codes, shape (rows,)."""

    def improvement(self, rows: Matrix) -> Floats:
        """Expected improvement of the log ratio over the best estimate, shape (rows,)."""

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """New settings with large expected improvement, and the improvement of each."""

    def ranking(self) -> tuple[list[Codes], Floats]:
        """The measured settings by their estimates, the best first, and these estimates."""

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None for the default."""


@dataclass
class _Exam:
    """Both models, fitted to the runs ``known``, and how far they were off at the ``later`` ones.

    ``errors`` are the sums of squared errors of both, ``surprise`` is that of the errors of the
    second in units of their expected deviation.
    """

    known: Runs
    adding: Model
    interacting: InteractionModel
    later: Runs
    errors: tuple[float, float] = (0.0, 0.0)
    surprise: float = 0.0


class Worlds:
    """Both models, ``adding`` and ``interacting``; the likelier one proposes.

    ``share`` is the probability that effects interact. The first two arguments make new models.
    ``clip`` is the log ratio above which both count every run alike. ``prior`` is ``share`` before
    any run. It has the methods of :class:`Model` except ``mean``.
    """

    def __init__(
        self,
        adding: Callable[[], Model],
        interacting: Callable[[], InteractionModel],
        clip: float,
        prior: float,
    ) -> None:
        self._make_adding, self._make_interacting = adding, interacting
        self.adding, self.interacting = adding(), interacting()
        self._clip, self._prior = clip, prior
        self._exams: dict[int, _Exam] = {}
        self.fit({}, None)

    def fit(self, ratios: Mapping[Codes, float], scatter: Scatter | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed), in their order."""
        self._judge(list(ratios.items()))
        self._model.fit(ratios, scatter)

    @property
    def interacts(self) -> bool:
        """True if effects probably depend on each other."""
        return self.share > 0.5

    @property
    def persistence(self) -> int:
        """How many times as many proposals in vain end a search."""
        is_shown = self.interacts and self.interacting.evidence > _EVIDENCE
        return _PERSISTENCE if is_shown else 1

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """New settings with large expected improvement, and the improvement of each."""
        return self._model.candidates(is_new)

    def improvement(self, rows: Matrix) -> Floats:
        """Expected improvement of the log ratio over the best estimate, shape (rows,)."""
        return self._model.improvement(rows)

    def ranking(self) -> tuple[list[Codes], Floats]:
        """The measured settings by their estimates, the best first, and these estimates."""
        return self._model.ranking()

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None for the default."""
        return self._model.favourite()

    @property
    def _model(self) -> Model:
        return self.interacting if self.interacts else self.adding

    def _judge(self, known: Runs) -> None:
        """Set the ``share`` and the calibration, given what both models predicted."""
        errors, surprise, count = np.zeros(2), 0.0, _FIRST
        while count < len(known):
            following = max(count + 1, math.floor(count * _GROWTH))
            exam = self._exam(count, known[:count], known[count:following])
            errors += exam.errors
            surprise += exam.surprise
            count = following
        runs = max(len(known) - _FIRST, 0)
        floor = (runs + _NOISE_WEIGHT) * _NOISE**2
        ratio = math.log((errors[0] + floor) / (errors[1] + floor))
        odds = math.log(self._prior / (1.0 - self._prior)) + runs / 2.0 * ratio / _RUNS_AS_ONE
        self.share = 1.0 / (1.0 + math.exp(-min(max(odds, -50.0), 50.0)))
        self.interacting.calibrate(surprise, runs)

    def _exam(self, count: int, known: Runs, later: Runs) -> _Exam:
        """The predictions from the first ``count`` runs for the ``later`` ones."""
        exam = self._exams.get(count)
        if exam is None or exam.known != known:
            exam = _Exam(known, self._make_adding(), self._make_interacting(), [])
            exam.adding.fit(dict(known), None)
            exam.interacting.fit(dict(known), None)
            self._exams[count] = exam
        if exam.later != later:
            exam.later = later
            rows = np.array([codes for codes, _ in later], dtype=np.intp)
            logs = np.log(np.array([ratio for _, ratio in [*known, *later]]))
            seen = telling_logs(logs, self._clip)
            most = float(seen.max())
            adding, interacting = (
                np.minimum(model.mean(rows), most) - seen[len(known) :]
                for model in (exam.adding, exam.interacting)
            )
            exam.errors = (float(adding @ adding), float(interacting @ interacting))
            exam.surprise = exam.interacting.surprise(rows, logs[len(known) :])
        return exam


def worlds(
    codec: Codec, clip: float, rng: Callable[[int], np.random.Generator], belief: Prior
) -> Worlds:
    """Both models for one space.

    ``rng`` returns the generator for a number of measured settings. ``belief`` is the prior of the
    effects in a small space, where every setting is scored.
    """
    every = listing(codec.space, codec)
    has_default = codec.space.is_valid(DEFAULT)

    def adding() -> Model:
        # Effects of pairs decide in the recorded small spaces; only the listed model has them.
        if every is None:
            return JointModel(codec, clip, rng, has_default=has_default)
        return ListedModel(codec, every, belief, clip, has_default=has_default)

    prior = _OF_LIBRARY + (_OF_PROGRAM - _OF_LIBRARY) * _program_share(codec.space)
    return Worlds(adding, lambda: InteractionModel(codec, every, rng), clip, prior)


def count_of_starts(space: Space) -> int:
    """The number of balanced settings with which a search of a space begins."""
    return round(_STARTS * _program_share(space))


def _program_share(space: Space) -> float:
    """The share of the parameters that a program reads, and not its library."""
    own = [p for p in space if p.target in ("arg", "file", "resource")]
    return len(own) / max(len(space), 1)
