"""The renewal of expired files: a setting that was measured again is proven with that version.

The file gets a new header and is rendered for the installed version.  It is published like a new
one: real launches must show that it is obeyed, else the former file stays.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autotune.errors import UsageError
from autotune.publish.formats import find
from autotune.publish.header import series, without_block
from autotune.publish.install import read_installed
from autotune.publish.plan import Planned
from autotune.publish.recheck import Recheck
from autotune.publish.verify import FileState
from runner.mpi.library import Library


def not_renewable(state: FileState, checks: Sequence[Recheck]) -> str:
    """Why an expired file cannot be renewed; "" if its gain was seen again on all its programs.

    ``checks`` are the new comparisons of its publication.
    """
    if state.header is None or state.in_force is False:
        return "it is not in force; search and publish again"
    if not state.header.proven:
        return "no library here was ever seen to obey it; publish again"
    open_ones = [f"{c.program}: {c.status}" for c in checks if c.status != "still there"]
    if open_ones:
        return f"its gain was not seen again ({'; '.join(open_ones)})"
    if not checks or len(checks) < len(state.header.evidence.check):
        return "no program of its evidence was measured again"
    return ""


def renewal(path: Path, library: Library, checks: Sequence[Recheck]) -> Planned:
    """The plan of a file with the evidence of ``checks``, which are all "still there".

    Raises UsageError if the file at ``path`` is gone or not autotune's.
    """
    text = read_installed(path)
    header = None if text is None else text.header
    if text is None or header is None:
        raise UsageError(
            f"{path} is gone, or no longer contains what autotune published", code="published.gone"
        )
    fmt = find(header.format)
    renewed = {
        "mpi_version": library.version,
        "mpi_bin": library.bin,
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "words": [f"{check.program}: {check.words}" for check in checks],
    }
    kept = without_block(text.main) if fmt.merges else ""
    return Planned(
        fmt=fmt,
        path=path,
        content=header.content,
        header=replace(
            header,
            mpi=series(library),
            evidence=replace(header.evidence, renewed=renewed),
            guards=fmt.guards,
        ),
        kept=kept if not kept or kept.endswith("\n") else f"{kept}\n",
        old=text,
        edited=False,
        backup=False,
        unobeyed=None,
    )
