"""Statistics of runs: estimates, comparisons with the default, looks, racing, blocks, resolution.

Pure functions: no input or output, no clock, random numbers only from a generator that is passed.
What is computed and why, with measured figures: docs/statistics.md.
"""

from autotune.stats.blocks import DefaultLevel, design, drifted
from autotune.stats.compare import MIN_GAIN, Comparison, NoBlocks, compare, known_gain
from autotune.stats.error_budget import ErrorBudget
from autotune.stats.estimate import Estimate, estimate
from autotune.stats.foresee import Foreseen, foresee, pairs_needed, scatter
from autotune.stats.pairs import detect_resolution
from autotune.stats.racing import beliefs, finalists, next_run, noise_of, time_limit
from autotune.stats.rejection import depends_on_setting
from autotune.stats.resolve import Resolvable, resolution_table
from autotune.stats.sequential import LOOKS, Decision, Plan, looks_up_to, settle, winner
from autotune.stats.slow import SLOW, SlowLaunches, slow_launches
from autotune.stats.words import comparison_words, estimate_words

__all__ = [
    "LOOKS",
    "MIN_GAIN",
    "SLOW",
    "Comparison",
    "Decision",
    "DefaultLevel",
    "ErrorBudget",
    "Estimate",
    "Foreseen",
    "NoBlocks",
    "Plan",
    "Resolvable",
    "SlowLaunches",
    "beliefs",
    "compare",
    "comparison_words",
    "depends_on_setting",
    "design",
    "detect_resolution",
    "drifted",
    "estimate",
    "estimate_words",
    "finalists",
    "foresee",
    "known_gain",
    "looks_up_to",
    "next_run",
    "noise_of",
    "pairs_needed",
    "resolution_table",
    "scatter",
    "settle",
    "slow_launches",
    "time_limit",
    "winner",
]
