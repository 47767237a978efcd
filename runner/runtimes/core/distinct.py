"""Functions whose arrays share no memory, so that the compiler needs no checks.

Loops over many arrays are vectorised only if the compiler knows that no written array overlaps
another one. It can test this before the loop for a few arrays, not for ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__distinct__"


def distinct(function: Function) -> Function:
    """Decorator of a function of the dialect: no array that it writes overlaps another argument.

    This is not checked. If it is false, the results are undefined.
    """
    setattr(function, _MARK, True)
    return function


def is_distinct(function: Callable[..., Any]) -> bool:
    """True if the function is marked by :func:`distinct`."""
    return getattr(function, _MARK, False) is True


def options(function: Callable[..., Any]) -> dict[str, Any]:
    """The options of ``numba.njit`` for the mark. It imports numba."""
    if not is_distinct(function):
        return {}
    from numba.core.compiler import Compiler

    class Distinct(Compiler):  # type: ignore[misc]
        """numba's compiler; pointers among the arguments are marked ``noalias``."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            flags = self.state.flags.copy()
            flags.noalias = True
            self.state.flags = flags

    return {"pipeline_class": Distinct}
