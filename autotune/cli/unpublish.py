"""``autotune unpublish``: removes published files and restores the previous content."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, opt
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.terminal.render import print_line, write_json
from runner.files.paths import exists


def unpublish(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Published files to remove.")
    ] = None,
    everything: Annotated[bool, opt("--all", "Remove all files that you have published.")] = False,
    force: Annotated[
        bool, opt("--force", "Remove also files that were edited since; the edited file is saved.")
    ] = False,
    json_out: JsonOut = None,
) -> None:
    """Remove published files and restore what was there before."""
    from autotune.api.publication import RemovedFile, RemovedFiles
    from autotune.publish.published_files import forget, published
    from autotune.publish.undo import remove

    if files and everything:
        raise UsageError(
            "FILE... and --all were both given; give only one of them", code="published.conflict"
        )
    paths = [f.expanduser().absolute() for f in files or ()]
    if not paths:
        paths_on_record = published()
        if not everything:
            file_lines = "".join(f"\n  {p}" for p in paths_on_record) or "\n  none"
            raise UsageError(
                "no file given; expected autotune unpublish FILE... or --all. Published "
                f"files:{file_lines}",
                code="published.none",
            )
        for missing_path in (p for p in paths_on_record if not exists(p)):
            forget(missing_path)
        paths = [p for p in paths_on_record if exists(p)]
    # Of files that were published together the last may name the first, so it is removed first.
    removals: list[RemovedFile] = []
    problems: list[AutotuneError] = []
    for path in reversed(paths):
        try:
            removals.append(RemovedFile(path=str(path), done=remove(path, force)))
        except AutotuneError as problem:
            problems.append(problem)  # The other files are still removed.
            continue
        if json_out != "-":
            print_line(removals[-1].done, whole=True)
    if json_out:
        write_json(RemovedFiles(files=removals), json_out)
    elif not removals and not problems:
        print_line("no file is published; nothing was done")
    if problems:
        words = "\n".join(f"{problem}" for problem in problems)
        raise (
            UsageError(words, code=problems[0].code)
            if isinstance(problems[0], UsageError)
            else WorkError(words, code=problems[0].code)
        )
