"""What studies measured of one parameter: its levels beside the default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LevelRatio:
    """A value of a parameter in one study: the median, over the settings that have it, of their
    time divided by the default's; below 1 is faster."""

    value: str
    ratio: float
    settings: int


@dataclass(frozen=True)
class StudyEffect:
    """What one study measured of a parameter; ``best`` and ``worst`` level."""

    study: int
    app: str
    best: LevelRatio
    worst: LevelRatio


@dataclass(frozen=True)
class MeasuredEffect:
    """A parameter in the studies of a database.

    ``studies`` counts those that tried a value of it, ``recommended`` those that recommend one.
    ``effects`` are of those that measured the default, too; the newest first.
    """

    studies: int = 0
    recommended: int = 0
    effects: tuple[StudyEffect, ...] = ()
    problem: str = ""
    """The code of the error because of which the database cannot be read; "" if it can."""

    @property
    def best(self) -> StudyEffect | None:
        """The study with the fastest level."""
        return min(self.effects, key=lambda effect: effect.best.ratio, default=None)

    @property
    def worst(self) -> StudyEffect | None:
        """The study with the slowest level."""
        return max(self.effects, key=lambda effect: effect.worst.ratio, default=None)
