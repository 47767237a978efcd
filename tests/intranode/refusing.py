"""What a library refuses, for programs that print what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.runtimes.intranode import IntranodeError


def refused(words: str, action: Callable[[], Any]) -> None:
    """Print a line if the action is not refused with these words."""
    try:
        action()
    except IntranodeError as error:
        if words not in str(error):
            print(f"expected {words}, not {error}", flush=True)
    else:
        print(f"not refused: {words}", flush=True)
