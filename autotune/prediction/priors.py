"""Settings that a search should try first, and those that may be named here at all."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.prediction.exposure import acting
from autotune.prediction.files import Model
from autotune.prediction.scaling import described
from autotune.space import DEFAULT, Setting, Space
from runner.trace import Features

MOST = 3
LISTED = 1500
"""Settings of a space up to which all are scored."""


def usable(settings: Sequence[Setting], space: Space, *, grid: bool = False) -> list[Setting]:
    """Those of the settings that this space allows, in its canonical form, each once.

    With ``grid`` values between its levels are refused, too.
    """
    good = [space.canonical(s) for s in settings if not space.violations(s, grid=grid)]
    return [s for s in dict.fromkeys(good) if s != DEFAULT]


def priors_for(features: Features, space: Space, model: Model, most: int = MOST) -> list[Setting]:
    """What the model expects to be fastest for the program, best first; at most ``most``.

    A search measures what it tries, so no certainty is asked for: every setting expected to be
    faster than the default counts.  Parameters that the space does not have, and values off its
    grid, and those that act on nothing that the program does, are left out of a setting before it
    is scored.  Of a small space all settings are scored,
    too: a model that knows their parameters has an opinion of combinations that nobody ran.
    """
    values = described(features)
    fitting = [_within(setting, space) for setting in model.settings]
    all_of_it = [*fitting, *(space.listed(LISTED) or ())]
    candidates = usable([acting(setting, values) for setting in all_of_it], space, grid=True)
    if not candidates:
        return []
    scores = model.predictor.scorer.scores(values, candidates)
    order = scores.argsort(kind="stable")
    return [candidates[i] for i in order[:most] if scores[i] < 0]


def _within(setting: Setting, space: Space) -> Setting:
    return Setting(
        {
            name: value
            for name, value in setting.items()
            if name in space and space[name].problem(space[name].normalise(value)) is None
        }
    )
