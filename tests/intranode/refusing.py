"""What a library refuses, for programs whose tests compare it with a snapshot."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from runner.runtimes.intranode import IntranodeError

_TEXTS: list[str] = []


def refused(action: Callable[[], Any]) -> None:
    """Note with which code and words an action is refused, without addresses of objects."""
    try:
        action()
    except IntranodeError as error:
        _TEXTS.append(re.sub(" at 0x[0-9a-f]+", "", f"[{error.code}] {error}"))
    else:
        _TEXTS.append("nothing is refused")


def report(comm: Any) -> None:
    """Print, from rank 0, the refusals of each rank in JSON."""
    texts = comm.gather(_TEXTS)
    if comm.rank == 0:
        print(json.dumps(texts))
