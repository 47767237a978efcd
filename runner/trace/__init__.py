"""The communication of a program: profiling library, and the counts, features, profile of a run."""

from runner.trace.checks import FeaturesError
from runner.trace.document import Features, features_from_json, load_features
from runner.trace.profile import Profile, ProfileRow
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
    "Profile",
    "ProfileRow",
    "features_from_json",
    "load_features",
]
