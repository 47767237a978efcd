"""Spaces: parameters, levels, conditions and constraints, and which settings are valid."""

from typing import TYPE_CHECKING

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.space.expression import ExpressionError, parse_expression
    from autotune.space.inactive_parameters import InactiveParameters
    from autotune.space.library_choice import LibraryChoice
    from autotune.space.named_space import join, load_space, space_names
    from autotune.space.parameter import Parameter
    from autotune.space.setting import DEFAULT, Setting, Value
    from autotune.space.space import Constraint, Space

__all__ = [
    "DEFAULT",
    "Constraint",
    "ExpressionError",
    "InactiveParameters",
    "LibraryChoice",
    "Parameter",
    "Setting",
    "Space",
    "Value",
    "join",
    "load_space",
    "parse_expression",
    "space_names",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DEFAULT": "autotune.space.setting",
        "Constraint": "autotune.space.space",
        "ExpressionError": "autotune.space.expression",
        "InactiveParameters": "autotune.space.inactive_parameters",
        "LibraryChoice": "autotune.space.library_choice",
        "Parameter": "autotune.space.parameter",
        "Setting": "autotune.space.setting",
        "Space": "autotune.space.space",
        "Value": "autotune.space.setting",
        "join": "autotune.space.named_space",
        "load_space": "autotune.space.named_space",
        "parse_expression": "autotune.space.expression",
        "space_names": "autotune.space.named_space",
    },
)
