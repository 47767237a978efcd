"""What makes two spaces the same: part of a study's key."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from autotune.space.parameter import Parameter

if TYPE_CHECKING:
    from autotune.space.space import Space


def fingerprint(space: Space) -> str:
    """SHA-256 (hex) over all that decides which settings there are and what they launch."""
    content: dict[str, object] = {
        "parameters": [
            _content(parameter) for parameter in sorted(space.parameters, key=lambda p: p.name)
        ],
        "constraints": sorted(str(c.expr) for c in space.constraints),
        "facts": {k: v for k, v in sorted(space.facts.items()) if k in _mentioned(space)},
    }
    # Only where there are any: spaces without them keep the hash they always had.
    if space.derived:
        content["derived"] = {name: str(expr) for name, expr in sorted(space.derived.items())}
    if space.arguments:
        content["arguments"] = [[a.template, str(a.when or "")] for a in space.arguments]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _mentioned(space: Space) -> set[str]:
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
        **({} if parameter.option is None else {"option": parameter.option}),
    }
