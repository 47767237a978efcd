"""The fingerprint of a space: a hash of everything that determines its settings, for a study's
key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from autotune.space.expression import Expr
from autotune.space.parameter import Argument, Parameter
from autotune.space.setting import Value


def fingerprint(
    parameters: Sequence[Parameter],
    rules: Sequence[Expr],
    facts: Mapping[str, Value],
    derived_values: Mapping[str, Expr],
    arguments: Sequence[Argument],
) -> str:
    """SHA-256 (hex) of everything that determines the settings and their launches.

    ``rules`` are the expressions of the constraints; only ``facts`` used in expressions count.
    """
    fact_names = _names_in_expressions(parameters, rules, derived_values, arguments)
    content: dict[str, object] = {
        "parameters": [_content(p) for p in sorted(parameters, key=lambda p: p.name)],
        "constraints": sorted(map(str, rules)),
        "facts": {k: v for k, v in sorted(facts.items()) if k in fact_names},
    }
    # Added only if present, so that the hash of other spaces did not change.
    if derived_values:
        content["derived"] = {name: str(expr) for name, expr in sorted(derived_values.items())}
    if arguments:
        content["arguments"] = [[a.template, str(a.when or "")] for a in arguments]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _names_in_expressions(
    parameters: Sequence[Parameter],
    rules: Sequence[Expr],
    derived_values: Mapping[str, Expr],
    arguments: Sequence[Argument],
) -> set[str]:
    """Every name in an expression of the space."""
    names: set[str] = set()
    for expr in [*rules, *derived_values.values()]:
        names |= expr.names
    names.update(*(argument.places for argument in arguments))
    for condition in [*(p.when for p in parameters), *(a.when for a in arguments)]:
        names |= condition.names if condition else set()
    return names


def _content(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "target": parameter.target,
        "levels": list(parameter.levels),
        "default": parameter.default,
        "unset": parameter.unset,
        "when": str(parameter.when or ""),
        "implies": dict(parameter.implies),
        **({"implies_at": _by_level(parameter)} if parameter.implies_at else {}),
        **({} if parameter.option is None else {"option": parameter.option}),
    }


def _by_level(parameter: Parameter) -> dict[str, dict[str, Value]]:
    """The values implied by single levels, with the level as text."""
    return {str(level): dict(values) for level, values in parameter.implies_at.items()}
