"""Prediction: one traced run of an unseen program gives its setting (docs/prediction.md)."""

from autotune.prediction.evaluation import GROUPS, Evaluation, evaluate
from autotune.prediction.examples import Example, TrainingSet, features_of, training_set
from autotune.prediction.exposure import acting
from autotune.prediction.model_file import (
    Model,
    default_place,
    find_model,
    load_model,
    model_from_text,
    model_of,
)
from autotune.prediction.predictor import CHOICES, KINDS, THESIS, Named, Neighbour, Predictor
from autotune.prediction.training import Trained, train
from autotune.prediction.warm_start import named_there, priors_for, usable

__all__ = [
    "CHOICES",
    "GROUPS",
    "KINDS",
    "THESIS",
    "Evaluation",
    "Example",
    "Model",
    "Named",
    "Neighbour",
    "Predictor",
    "Trained",
    "TrainingSet",
    "acting",
    "default_place",
    "evaluate",
    "features_of",
    "find_model",
    "load_model",
    "model_from_text",
    "model_of",
    "named_there",
    "priors_for",
    "train",
    "training_set",
    "usable",
]
