"""What a program communicates: the profiling library, the counts of a run, and its features."""

from runner.trace.document import Features, FeaturesError, features_from_json, load_features
from runner.trace.schema import (
    COUNT_NAMES,
    FEATURE_NAMES,
    FEATURES,
    SCHEMA,
    SPECS,
    THESIS_NAMES,
    FeatureSpec,
)

__all__ = [
    "COUNT_NAMES",
    "FEATURES",
    "FEATURE_NAMES",
    "SCHEMA",
    "SPECS",
    "THESIS_NAMES",
    "FeatureSpec",
    "Features",
    "FeaturesError",
    "features_from_json",
    "load_features",
]
