"""What the thesis printed: its figures, from ``benchmarks/references/pellegrini.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from benchmarks.compiled import REFERENCES


@cache
def printed() -> dict[str, Any]:
    """The tables and figures of the thesis."""
    return tomllib.loads((REFERENCES / "pellegrini.toml").read_text())
