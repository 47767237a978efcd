"""The source of a value that a library refuses: a parameter file or a variable.

Libraries' messages name the value, but seldom its source. A user who has not typed it does not know
where to look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PARTS = re.compile(r"[,;:^\s]+")
_MOST = 3


def source_words(inherited_values: Mapping[str, str], message: str) -> str:
    """The inherited settings named in a failure's message, as text to append to a reason.

    ``inherited_values``: values by variable, or by ``FILE:PARAMETER``, as from
    :meth:`runner.mpi.base.Adapter.inherited_settings`. A setting is named if the message has its
    value, or a part of it, after a colon at the end of a line or in quotes. "" if none is named.
    """
    values = set(re.findall(r":\s+(\S+)\s*$", message, re.MULTILINE))
    values |= set(re.findall(r"[\"'`]([^\"'`\s]+)[\"'`]", message))
    settings = [
        _words(name, value)
        for name, value in inherited_values.items()
        if value and not values.isdisjoint({value, *filter(None, _PARTS.split(value))})
    ]
    return f"; from {' and '.join(settings[:_MOST])}" if settings else ""


def all_words(inherited_values: Mapping[str, str]) -> str:
    """All inherited settings, as text to append to a reason without names; "" if there are none."""
    settings = [_words(name, value) for name, value in inherited_values.items()]
    return f"; inherited settings: {', '.join(settings)}" if settings else ""


def _words(name: str, value: str) -> str:
    place, colon, parameter = name.rpartition(":")
    return f"{parameter} = {value} in {place}" if colon else f"the variable {name}={value}"
