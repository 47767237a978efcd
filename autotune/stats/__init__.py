"""Statistics of runs: estimates, comparisons, looks, racing, blocks, power and resolution.

All functions are pure: no input or output, no clock, and random numbers only from a generator that
the caller passes. docs/explanation/statistics.md explains the methods, with measured figures.
"""

from autotune.stats.blocks import DefaultLevel, design, drift_blocks
from autotune.stats.comparison import MIN_GAIN, Comparison, NoBlocks, compare, known_gain
from autotune.stats.estimate import Estimate, estimate
from autotune.stats.log_ratios import detect_resolution, noise_band
from autotune.stats.mean_difference import MeanDifference, mean_difference
from autotune.stats.power import (
    PowerEstimate,
    Resolvable,
    decision_power,
    required_pairs,
    resolution_table,
    scatter,
)
from autotune.stats.racing import finalists, next_run, noise_of, posterior, time_limit
from autotune.stats.sentences import comparison_words, estimate_words
from autotune.stats.sequential import (
    LOOKS,
    Decision,
    ErrorBudget,
    LookPlan,
    looks_up_to,
    settle,
    winner,
)
from autotune.stats.slow_launches import SlowLaunches, slow_from, slow_launches
from autotune.stats.uncertainty import depends_on_setting

__all__ = [
    "LOOKS",
    "MIN_GAIN",
    "Comparison",
    "Decision",
    "DefaultLevel",
    "ErrorBudget",
    "Estimate",
    "LookPlan",
    "MeanDifference",
    "NoBlocks",
    "PowerEstimate",
    "Resolvable",
    "SlowLaunches",
    "compare",
    "comparison_words",
    "decision_power",
    "depends_on_setting",
    "design",
    "detect_resolution",
    "drift_blocks",
    "estimate",
    "estimate_words",
    "finalists",
    "known_gain",
    "looks_up_to",
    "mean_difference",
    "next_run",
    "noise_band",
    "noise_of",
    "posterior",
    "required_pairs",
    "resolution_table",
    "scatter",
    "settle",
    "slow_from",
    "slow_launches",
    "time_limit",
    "winner",
]
