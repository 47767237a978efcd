"""Pictures of terminal sessions show what the command left on the screen."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.terminal_session import draw, main, run, screen


def test_a_line_that_is_drawn_anew_is_there_once() -> None:
    output = "begin\r\n1 of 2\r\x1b[2K2 of 2\r\x1b[2K\x1b[1mdone\x1b[0m\r\nend\r\n"
    assert screen(output) == ["begin", "\x1b[1mdone\x1b[0m", "end", ""]


def test_lines_above_are_drawn_anew() -> None:
    assert screen("a\r\nb\r\n\x1b[1A\x1b[2Kc\r\n") == ["a", "c", ""]


def test_the_command_has_a_terminal(tmp_path: Path) -> None:
    program = "import os, sys; print(os.isatty(1), os.get_terminal_size().columns); sys.exit(3)"
    code, output = run([sys.executable, "-c", program], tmp_path)
    assert code == 3
    assert "True 80" in output


def test_the_picture_is_readable_and_loads_nothing() -> None:
    svg = draw(["autotune", "apps"], ["\x1b[1mjacobi3d\x1b[0m", "a < b & c", "", ""])
    words = "".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ")
    assert "$ autotune apps" in words.replace("\n", "")
    assert "a < b & c" in words
    assert "url(http" not in svg
    assert "@font-face" not in svg


def test_a_real_command_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "apps.svg"
    assert main(["--svg", str(picture), "--", "autotune", "apps"]) == 0
    assert "jacobi3d" in picture.read_text()


def test_a_failed_command_leaves_no_picture(tmp_path: Path) -> None:
    picture = tmp_path / "none.svg"
    assert main(["--svg", str(picture), "--", "autotune", "show", "nothing"]) == 2
    assert not picture.exists()
