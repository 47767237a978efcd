"""``autotune unpublish``: what was there before a publication is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, opt
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.publish.record import forget, published
from autotune.publish.undo import remove
from autotune.terminal.render import console, write_json


def unpublish(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Published files.")
    ] = None,
    everything: Annotated[bool, opt("--all", "All files that you have published.")] = False,
    force: Annotated[
        bool, opt("--force", "Also a file that was edited since (it is kept).")
    ] = False,
    json_out: JsonOut = None,
) -> None:
    """Take published files away and put back what was there before."""
    if files and everything:
        raise UsageError("give either FILE... or --all, not both")
    paths = [f.expanduser().absolute() for f in files or ()]
    if not paths:
        known = published()
        if not everything:
            listed = "".join(f"\n  {p}" for p in known) or "\n  none"
            raise UsageError(f"which file?  autotune unpublish FILE... or --all; known:{listed}")
        for gone in (p for p in known if not p.exists()):
            forget(gone)
        paths = [p for p in known if p.exists()]
    # Of files made together the last may name the first.
    done: list[dict[str, str]] = []
    problems: list[AutotuneError] = []
    for path in reversed(paths):
        try:
            done.append({"path": str(path), "done": remove(path, force)})
        except AutotuneError as problem:
            problems.append(problem)  # The others are undone all the same.
            continue
        forget(path)
        if json_out != "-":
            console().print(done[-1]["done"], markup=False, soft_wrap=True)
    if json_out:
        write_json({"schema": "autotune-unpublished-1", "files": done}, json_out)
    elif not done and not problems:
        console().print("nothing is published", markup=False)
    if problems:
        words = "\n".join(f"{problem}" for problem in problems)
        raise UsageError(words) if isinstance(problems[0], UsageError) else WorkError(words)
