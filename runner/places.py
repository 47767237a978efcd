"""Where files of this user belong, after the XDG base directory specification.

A variable that holds a relative path is to be ignored, the specification says.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache(*parts: str) -> Path:
    """``$XDG_CACHE_HOME/autotune/PARTS``, or below ``~/.cache``: what can be made again."""
    return _below("XDG_CACHE_HOME", ".cache", parts)


def data(*parts: str) -> Path:
    """``$XDG_DATA_HOME/autotune/PARTS``, or below ``~/.local/share``: what must be kept."""
    return _below("XDG_DATA_HOME", ".local/share", parts)


def _below(variable: str, usual: str, parts: tuple[str, ...]) -> Path:
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():
        base = Path("~").expanduser() / usual
    return base.joinpath("autotune", *parts)
