"""The fingerprint of a space: a hash of what decides its settings, part of a study's key."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from autotune.space.parameter import Parameter
from autotune.space.setting import Value

if TYPE_CHECKING:
    from autotune.space.space import Space


def fingerprint(space: Space) -> str:
    """SHA-256 (hex) of all that decides which settings exist and what they launch."""
    content: dict[str, object] = {
        "parameters": [
            _content(parameter) for parameter in sorted(space.parameters, key=lambda p: p.name)
        ],
        "constraints": sorted(str(c.expr) for c in space.constraints),
        "facts": {
            k: v for k, v in sorted(space.facts.items()) if k in _names_in_expressions(space)
        },
    }
    # Added only if there are any, so that the hash of other spaces did not change.
    if space.derived:
        content["derived"] = {name: str(expr) for name, expr in sorted(space.derived.items())}
    if space.arguments:
        content["arguments"] = [[a.template, str(a.when or "")] for a in space.arguments]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _names_in_expressions(space: Space) -> set[str]:
    """Every name in an expression of the space."""
    used: set[str] = set()
    for expr in [*(c.expr for c in space.constraints), *space.derived.values()]:
        used |= expr.names
    used.update(*(argument.places for argument in space.arguments))
    for condition in [*(p.when for p in space), *(a.when for a in space.arguments)]:
        used |= condition.names if condition else set()
    return used


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
    """What single levels imply, with the level as text."""
    return {str(level): dict(values) for level, values in parameter.implies_at.items()}
