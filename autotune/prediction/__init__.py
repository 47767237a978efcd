"""Prediction: the features of one traced run of an unseen program give a setting for it.

See docs/explanation/prediction.md.
"""

from typing import TYPE_CHECKING

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.prediction.evaluation import GROUPS, Evaluation, evaluate
    from autotune.prediction.examples import Example, TrainingSet, stored_features, training_set
    from autotune.prediction.exposure import acting
    from autotune.prediction.model_file import (
        ModelFile,
        default_place,
        find_model,
        load_model,
        model_from_text,
        model_of,
    )
    from autotune.prediction.predictor import (
        CHOICES,
        KINDS,
        THESIS,
        NamedSetting,
        Neighbour,
        Predictor,
    )
    from autotune.prediction.training import TrainingResult, train
    from autotune.prediction.warm_start import (
        learned_families,
        local_settings,
        warm_start_settings,
    )

__all__ = [
    "CHOICES",
    "GROUPS",
    "KINDS",
    "THESIS",
    "Evaluation",
    "Example",
    "ModelFile",
    "NamedSetting",
    "Neighbour",
    "Predictor",
    "TrainingResult",
    "TrainingSet",
    "acting",
    "default_place",
    "evaluate",
    "find_model",
    "learned_families",
    "load_model",
    "local_settings",
    "model_from_text",
    "model_of",
    "stored_features",
    "train",
    "training_set",
    "warm_start_settings",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CHOICES": "autotune.prediction.predictor",
        "GROUPS": "autotune.prediction.evaluation",
        "KINDS": "autotune.prediction.predictor",
        "THESIS": "autotune.prediction.predictor",
        "Evaluation": "autotune.prediction.evaluation",
        "Example": "autotune.prediction.examples",
        "ModelFile": "autotune.prediction.model_file",
        "NamedSetting": "autotune.prediction.predictor",
        "Neighbour": "autotune.prediction.predictor",
        "Predictor": "autotune.prediction.predictor",
        "TrainingResult": "autotune.prediction.training",
        "TrainingSet": "autotune.prediction.examples",
        "acting": "autotune.prediction.exposure",
        "default_place": "autotune.prediction.model_file",
        "evaluate": "autotune.prediction.evaluation",
        "find_model": "autotune.prediction.model_file",
        "load_model": "autotune.prediction.model_file",
        "model_from_text": "autotune.prediction.model_file",
        "model_of": "autotune.prediction.model_file",
        "learned_families": "autotune.prediction.warm_start",
        "local_settings": "autotune.prediction.warm_start",
        "stored_features": "autotune.prediction.examples",
        "train": "autotune.prediction.training",
        "training_set": "autotune.prediction.examples",
        "warm_start_settings": "autotune.prediction.warm_start",
    },
)
