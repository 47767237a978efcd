"""Spaces: parameters, levels, conditions and constraints, and which settings are valid."""

from autotune.space.expression import ExpressionError
from autotune.space.expression import parse_expression as parse_expression
from autotune.space.inactive import InactiveParameters
from autotune.space.parameter import Parameter
from autotune.space.resolve import join, load_space, space_names
from autotune.space.setting import DEFAULT, Setting, Value
from autotune.space.space import Constraint, Space

__all__ = [
    "DEFAULT",
    "Constraint",
    "ExpressionError",
    "InactiveParameters",
    "Parameter",
    "Setting",
    "Space",
    "Value",
    "join",
    "load_space",
    "parse_expression",
    "space_names",
]
