"""Regular expressions that are compiled at first use: most processes need only few."""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    def __init__(self, text: str, flags: int) -> None:
        self._arguments = (text, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)  # An ordinary attribute from now on.
        return value


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """A lazy substitute for ``re.compile``; only methods and attributes of the result can be
    used."""
    return cast("re.Pattern[str]", _Lazy(text, flags))
