"""Strategies: the search algorithms that choose the next setting.

Nothing in this package launches, times or stores anything.
"""

from autotune.strategies.base import (
    DEFAULTS,
    INACTIVE,
    SCATTER,
    STATES,
    UNUSED,
    Observation,
    Proposal,
    Strategy,
)
from autotune.strategies.ga import GASampler
from autotune.strategies.options import Option, OptionValue
from autotune.strategies.registry import (
    code_of,
    create,
    describe,
    find,
    names,
    resolve_options,
    stored_options,
)

__all__ = [
    "DEFAULTS",
    "INACTIVE",
    "SCATTER",
    "STATES",
    "UNUSED",
    "GASampler",
    "Observation",
    "Option",
    "OptionValue",
    "Proposal",
    "Strategy",
    "code_of",
    "create",
    "describe",
    "find",
    "names",
    "resolve_options",
    "stored_options",
]
