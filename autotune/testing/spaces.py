"""Spaces on which strategies are tried."""

from __future__ import annotations

from autotune.space import Parameter, Space, parse_expression
from autotune.space.space import Constraint

_SIZE = Parameter("size", (64, 256, 1024), default=128)
_FLAG = Parameter("flag", (0, 1), default=0)
_WORD = Parameter("word", ("ring", "tree"))

SINGLE = Space("single", (Parameter("size", (1, 2, 3, 4)),))

SMALL = Space("small", (_SIZE, _FLAG, _WORD))
"""24 settings."""

RULED = Space(
    "ruled",
    (
        Parameter("low", (1, 2, 4)),
        Parameter("high", (1, 2, 4), default=4),
        _FLAG,
        Parameter("depth", (1, 2), when=parse_expression("flag == 1")),
    ),
    (Constraint(parse_expression("low <= high"), "the low limit is below the high one"),),
)
"""A condition and a rule."""

MAPPED = Space(
    "mapped",
    (_SIZE, _WORD, Parameter("map_by", ("node", "slot"), target="placement", default="slot")),
)
"""What a mapping shows to do nothing may do something under another."""

FORCED = Space(
    "forced",
    (Parameter("ranks", (1, 2, 4), target="resource", unset=False), _FLAG, _WORD),
)
"""Here the default is no valid setting."""

MANY = Space(
    "many",
    (
        _SIZE,
        _FLAG,
        _WORD,
        *(Parameter(f"p{i}", tuple(2**k for k in range(2 + i % 5))) for i in range(12)),
        Parameter("depth", (1, 2, 3), when=parse_expression("flag == 1")),
    ),
    (Constraint(parse_expression("p3 <= p4")),),
)
"""Far more settings than are ever tried."""
