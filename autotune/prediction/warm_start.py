"""Settings that a search should try first, and those that may be named here at all."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.prediction.exposure import acting
from autotune.prediction.model_file import ModelFile
from autotune.prediction.scorer import described
from autotune.space import DEFAULT, Setting, Space
from runner.trace import Features

MOST = 3
LISTED = 1500
"""Settings of a space up to which all are scored."""


def named_here(setting: Setting, space: Space) -> Setting:
    """The setting under the names that its parameters have in this space, which may be of another
    MPI than those that the model learned from (``btl_sm_*`` of Open MPI 5 is ``btl_vader_*``)."""
    return Setting({space.aliases.get(name, name): value for name, value in setting.items()})


def named_there(setting: Setting, space: Space, model: ModelFile) -> Setting:
    """The same back: under the names by which the model knows the parameters."""
    known = {name for learned in model.settings for name in learned}
    names = {here: there for there, here in space.aliases.items() if there in known}
    return Setting({n if n in known else names.get(n, n): v for n, v in setting.items()})


def usable(settings: Sequence[Setting], space: Space, *, grid: bool = False) -> list[Setting]:
    """Those of the settings that this space allows, in its canonical form and under its names, each
    once.

    With ``grid`` values between its levels are refused, too.
    """
    here = [named_here(setting, space) for setting in settings]
    good = [space.canonical(s) for s in here if not space.violations(s, grid=grid)]
    return [s for s in dict.fromkeys(good) if s != DEFAULT]


def warm_start_settings(
    features: Features, space: Space, model: ModelFile, most: int = MOST
) -> list[Setting]:
    """What the model expects to be fastest for the program, best first; at most ``most``.

    A search measures what it tries, so no certainty is asked for: every setting expected to be
    faster than the default counts.  Parameters that the space does not have, and values off its
    grid, and those that act on nothing that the program does, are left out of a setting before it
    is scored.  Of a small space all settings are scored,
    too: a model that knows their parameters has an opinion of combinations that nobody ran.
    """
    values = described(features)
    fitting = [_within(named_here(setting, space), space) for setting in model.settings]
    all_of_it = [*fitting, *(space.listed(LISTED) or ())]
    candidates = usable([acting(setting, values) for setting in all_of_it], space, grid=True)
    if not candidates:
        return []
    there = [named_there(setting, space, model) for setting in candidates]
    scores = model.predictor.scorer.scores(values, there)
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
