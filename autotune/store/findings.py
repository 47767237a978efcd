"""What is wrong with a results database, or with what rests on it: one finding for each fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StoreFinding:
    """One fault: its code, a sentence, and what to do; ``data`` has its figures, in JSON types."""

    code: str
    words: str
    advice: str
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)
