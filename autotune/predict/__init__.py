"""Prediction: one traced run of an unseen program gives its setting (docs/prediction.md)."""

from autotune.predict.evaluation import GROUPS, Evaluation, evaluate
from autotune.predict.examples import Example, TrainingSet
from autotune.predict.exposure import acting
from autotune.predict.files import (
    Model,
    default_place,
    find_model,
    load_model,
    model_from_text,
    model_of,
)
from autotune.predict.kinds import CHOICES, KINDS, THESIS
from autotune.predict.predictor import Named, Neighbour, Predictor
from autotune.predict.priors import named_there, priors_for, usable
from autotune.predict.sources import features_of, training_set
from autotune.predict.training import Trained, train

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
