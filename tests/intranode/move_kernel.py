"""The compiled copies and sums, for tests without MPI."""

from __future__ import annotations

from runner.runtimes.intranode.moves import add_to, move, put_in

FUNCTIONS = {
    "move_part": "void(int64, int64, int64, int64, int64)",
    "add_part": "void(int64, int64, int64, int64)",
    "put_part": "void(int64, int64, int64, int64, int64)",
}


def move_part(target: int, source: int, begin: int, end: int, bounce: int) -> None:
    move(target, source, begin, end, bounce)


def add_part(target: int, source: int, size: int, operation: int) -> None:
    add_to(target, source, size, operation)


def put_part(buffer: int, region: int, begin: int, end: int, operation: int) -> None:
    put_in(buffer, region, begin, end, operation)
