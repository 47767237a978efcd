"""Strategies: the search algorithms that choose the next setting.

Nothing in this package launches, times or stores anything.
"""

from typing import TYPE_CHECKING

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.strategies.base import (
        DEFAULTS,
        EQUAL,
        INACTIVE,
        SCATTER,
        STATES,
        UNUSED,
        Observation,
        Proposal,
        Strategy,
    )
    from autotune.strategies.codec import equal_layouts
    from autotune.strategies.ga.strategy import GASampler
    from autotune.strategies.options import Option, OptionValue
    from autotune.strategies.registry import (
        code_of,
        create,
        describe,
        find,
        names,
        resolve_options,
    )

__all__ = [
    "DEFAULTS",
    "EQUAL",
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
    "equal_layouts",
    "find",
    "names",
    "resolve_options",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DEFAULTS": "autotune.strategies.base",
        "EQUAL": "autotune.strategies.base",
        "INACTIVE": "autotune.strategies.base",
        "SCATTER": "autotune.strategies.base",
        "STATES": "autotune.strategies.base",
        "UNUSED": "autotune.strategies.base",
        "GASampler": "autotune.strategies.ga.strategy",
        "Observation": "autotune.strategies.base",
        "Option": "autotune.strategies.options",
        "OptionValue": "autotune.strategies.options",
        "Proposal": "autotune.strategies.base",
        "Strategy": "autotune.strategies.base",
        "code_of": "autotune.strategies.registry",
        "create": "autotune.strategies.registry",
        "describe": "autotune.strategies.registry",
        "equal_layouts": "autotune.strategies.codec",
        "find": "autotune.strategies.registry",
        "names": "autotune.strategies.registry",
        "resolve_options": "autotune.strategies.registry",
    },
)
