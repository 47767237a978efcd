"""The reduction of elements, for Python."""

from __future__ import annotations

from runner.runtimes.intranode.mcoll.elements import combine as combine_elements

FUNCTIONS = {"combine": "void(int64, int64, int64, int64, int64)"}


def combine(code: int, to: int, a: int, b: int, count: int) -> None:
    combine_elements(code, to, a, b, count)
