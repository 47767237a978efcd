"""Functions whose arrays share no memory: the compiler then needs no checks for that.

Loops over many arrays are vectorised only if the compiler knows that no array which is written
overlaps another one. It can test that before the loop for a few arrays, not for ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_MARK = "__distinct__"


def distinct(function: Function) -> Function:
    """Decorator of a function of the dialect: no array that it writes overlaps another argument.

    Nothing checks this. If it is not so, the function's results are undefined.
    """
    setattr(function, _MARK, True)
    return function


def is_distinct(function: Callable[..., Any]) -> bool:
    """Whether the function is marked by :func:`distinct`."""
    return getattr(function, _MARK, False) is True


def options(function: Callable[..., Any]) -> dict[str, Any]:
    """The options of ``numba.njit`` that the mark asks for. It imports numba."""
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
