"""Tables on a terminal of 80 columns."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from autotune.cli.render import WIDTH, table


@pytest.mark.parametrize(("width", "gap"), [(25, 2), (26, 1)])
def test_words_are_whole_as_long_as_one_space_leaves_them_room(width: int, gap: int) -> None:
    """Three columns: 76 and two gaps of two fill the line, 78 have room for gaps of one."""
    words = ["a" * width, "b" * width, "c" * 26]
    out = StringIO()
    Console(file=out, width=WIDTH).print(table("", ["one", "two", "three"], [words]))
    assert out.getvalue().splitlines()[1].rstrip() == (" " * gap).join(words)
