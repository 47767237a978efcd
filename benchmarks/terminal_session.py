"""A terminal session as a picture: runs a real command on a terminal and draws what it printed.

    python -m benchmarks.terminal_session                    # the README's search, two minutes
    python -m benchmarks.terminal_session --svg doctor.svg -- autotune doctor

The command gets a terminal of its own (80 columns) and draws on it as it does for a user.  The
picture shows the final state of the screen: lines that were drawn anew are there once.  It is
written only if the command succeeded.  The machine must be quiet for a search.  The picture loads
no font and no file, and its dark background is its own: it is readable on light and dark pages.
"""

from __future__ import annotations

import argparse
import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

from benchmarks.common import run_benchmark

ROOT = Path(__file__).resolve().parents[1]
SVG = ROOT / "docs" / "figures" / "session.svg"
COMMAND = ["autotune", "search", "--app", "jacobi3d", "--strategy", "ga"]
COLUMNS = 80
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
FAMILY = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
STEPS = re.compile(
    r"\x1b\[(?P<number>[\d;?]*)(?P<code>[A-HJKSTfhl])|\x1b\][^\x07]*\x07|(?P<word>[\r\n])"
)


def run(command: list[str], place: Path) -> tuple[int, str]:
    """Exit code and raw output of a command that runs in the folder ``place`` on a terminal."""
    environment = {
        **os.environ,
        "COLUMNS": str(COLUMNS),
        "LINES": "50",
        "TERM": "xterm-256color",
        "AUTOTUNE_STORE": str(place / "results.db"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    process = subprocess.Popen(
        command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    output = io.BytesIO()
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # The last process has closed the terminal.
            break
        if not part:
            break
        output.write(part)
    os.close(ours)
    return process.wait(), output.getvalue().decode(errors="replace")


def screen(output: str) -> list[str]:
    """The lines that stand on the terminal at the end; colours stay in them.

    Understood is what a line needs that is drawn anew: return to the start, up, erase the line.
    """
    lines = [""]
    at = 0
    fresh = True  # What is printed next replaces the line.
    for part in _parts(output):
        if part == "\n":
            at += 1
            fresh = False
            if at == len(lines):
                lines.append("")
        elif part == "\r":
            fresh = True
        elif isinstance(part, tuple):
            number, code = part
            if code == "A":
                at = max(0, at - int(number or 1))
            elif code == "K":
                lines[at] = ""
        else:
            lines[at] = part if fresh else lines[at] + part
            fresh = False
    return lines


def _parts(output: str) -> list[str | tuple[str, str]]:
    """Text, line ends, and steps of the cursor as (number, letter), in order."""
    parts: list[str | tuple[str, str]] = []
    end = 0
    output = output.replace("\r\n", "\n")
    for step in STEPS.finditer(output):
        text = output[end : step.start()]
        end = step.end()
        if text:
            parts.append(text)
        if step["word"]:
            parts.append(step["word"])
        elif step["code"]:
            parts.append((step["number"], step["code"]))
    rest = output[end:]
    return [*parts, rest] if rest else parts


def draw(command: list[str], lines: list[str]) -> str:
    """The picture (SVG) of a command and the lines that it left on the screen."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(Text("$ ", "bold green") + Text(shlex.join(command), "bold"))
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="autotune", unique_id="session")
    return re.sub(r"font-family: [^;]*;", f"font-family: {FAMILY};", FONT.sub("", svg))


def main(arguments: list[str] | None = None) -> int:
    """Run the command and write the picture; the command's exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.terminal_session",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--svg", type=Path, default=SVG, metavar="FILE", help="the picture")
    parser.add_argument("command", nargs="*", help="behind --; without it the README's search")
    options = parser.parse_args(arguments)
    command = options.command or COMMAND
    with tempfile.TemporaryDirectory(prefix="session-") as place:
        code, output = run(command, Path(place))
    lines = screen(output)
    print("\n".join(Text.from_ansi(line).plain for line in lines))
    if code:
        print(f"no picture: {shlex.join(command)} ended with exit code {code}", file=sys.stderr)
        return code
    options.svg.write_text(draw(command, lines), encoding="utf-8")
    print(f"picture: {options.svg}")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
