"""Which cores and kinds of regions this version of the MATE runtime has; for its benchmarks."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from runner import mate

CORES = ("native", "python")
Body = Callable[[Any, int], None]
Decorator = Callable[[Body], Body]


def has_compiled_regions() -> bool:
    """Whether a region can be compiled."""
    return "compiled" in inspect.signature(mate.Graph.region).parameters


def cores() -> tuple[str, ...]:
    """The cores that ``--core`` can name; only Python's in versions without that choice."""
    chosen = any(field.name == "core" for field in dataclasses.fields(mate.Config))
    return CORES if chosen else CORES[1:]


def config(core: str, **fields: Any) -> mate.Config:
    """A configuration with this core, one of :func:`cores`."""
    more: dict[str, Any] = {"core": core} if len(cores()) > 1 else {}
    return mate.Config(**more, **fields)


def region(graph: mate.Graph, name: str, depends: list[str], compiled: bool) -> Decorator:
    """``graph.region``; versions without compiled regions do not have the keyword."""
    more: dict[str, Any] = {"compiled": True} if compiled else {}
    decorator: Decorator = graph.region(name, depends, **more)
    return decorator
