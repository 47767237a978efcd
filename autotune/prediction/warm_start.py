"""Warm start: settings that a search tries first, under the names and levels of its space."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from autotune.prediction.exposure import acting
from autotune.prediction.model_file import ModelFile
from autotune.prediction.scorer import model_values
from autotune.space import DEFAULT, Setting, Space
from autotune.space.meanings import translate
from runner.trace import Features

MOST = 3
MOST_TO_LIST = 1500
"""A space with at most this many settings is scored completely."""


def with_local_names(setting: Setting, space: Space) -> Setting:
    """The setting with the parameter names of this space.  The model may have learned from another
    version of the MPI library (``btl_sm_*`` of Open MPI 5 is ``btl_vader_*`` of 4.1)."""
    return Setting({space.aliases.get(name, name): value for name, value in setting.items()})


def with_model_names(setting: Setting, space: Space, model_names: Collection[str]) -> Setting:
    """The inverse of :func:`with_local_names`: the setting with the model's names."""
    names = {
        local: model_name
        for model_name, local in space.aliases.items()
        if model_name in model_names
    }
    return Setting({n if n in model_names else names.get(n, n): v for n, v in setting.items()})


def usable(settings: Sequence[Setting], space: Space, *, grid: bool = False) -> list[Setting]:
    """The settings that this space allows, in canonical form and with its names, each once; the
    default is left out.

    With ``grid``, values that are not levels of the space are refused, too.
    """
    candidates = (with_local_names(setting, space) for setting in settings)
    present = [setting for setting in candidates if all(name in space for name in setting)]
    good = [space.canonical(s) for s in present if not space.violations(s, grid=grid)]
    return [s for s in dict.fromkeys(good) if s != DEFAULT]


def local_settings(
    settings: Sequence[Setting], space: Space, model: ModelFile, family: str, *, grid: bool = False
) -> dict[Setting, Setting]:
    """The usable ``settings`` of the model: the model's setting -> the local one.

    ``family`` is that of the local MPI library. If the model learned only from other families,
    settings are translated to this one (:mod:`autotune.space.meanings`).
    """
    families = learned_families(model)
    if family in families or not families:
        model_names = {name for setting in model.settings for name in setting}
        usable_settings = usable(settings, space, grid=grid)
        return {
            with_model_names(setting, space, model_names): setting for setting in usable_settings
        }
    pairs = ((s, translate(s, families[0], space, family).setting) for s in settings)
    return {original: local for original, local in pairs if local != DEFAULT}


def learned_families(model: ModelFile) -> list[str]:
    """The families of the MPI libraries of the training set, each once."""
    return list(dict.fromkeys(mpi.partition(" ")[0] for mpi in model.about.mpis))


def warm_start_settings(
    features: Features, space: Space, model: ModelFile, family: str
) -> list[Setting]:
    """The settings that the model expects to be fastest for the program, best first; at most
    :data:`MOST`.  ``family`` is that of the MPI library here.

    The search measures what it tries, so no certainty is needed: every setting expected to be
    faster than the default counts. Before scoring, three kinds of parameters are removed: those
    that the space lacks, those whose values are not levels, and those that cannot affect the
    program. In a small space all settings are scored, too, because a model that knows their
    parameters can score combinations that nobody ran.
    """
    values = model_values(features)
    fitting = [_within(with_local_names(setting, space), space) for setting in model.settings]
    all_of_it = [*fitting, *(space.all_settings(MOST_TO_LIST) or ())]
    families = learned_families(model)
    if family not in families and families:
        all_of_it = list(model.settings)
    acts = list(dict.fromkeys(acting(setting, values) for setting in all_of_it))
    candidates = local_settings(acts, space, model, family, grid=True)
    if not candidates:
        return []
    scores = model.predictor.scorer.scores(values, list(candidates))
    order = scores.argsort(kind="stable")
    settings = list(candidates.values())
    predictions = [settings[i] for i in order if scores[i] < 0]
    return list(dict.fromkeys(predictions))[:MOST]


def _within(setting: Setting, space: Space) -> Setting:
    return Setting(
        {
            name: value
            for name, value in setting.items()
            if name in space and space[name].problem(space[name].normalise(value)) is None
        }
    )
