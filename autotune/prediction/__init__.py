"""Prediction: the features of one traced run of an unseen program give a setting for it.

See docs/explanation/prediction.md.
"""

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
from autotune.prediction.predictor import CHOICES, KINDS, THESIS, NamedSetting, Neighbour, Predictor
from autotune.prediction.training import Trained, train
from autotune.prediction.warm_start import named_there, usable, warm_start_settings

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
    "Trained",
    "TrainingSet",
    "acting",
    "default_place",
    "evaluate",
    "find_model",
    "load_model",
    "model_from_text",
    "model_of",
    "named_there",
    "stored_features",
    "train",
    "training_set",
    "usable",
    "warm_start_settings",
]
