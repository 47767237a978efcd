"""``autotune mate timeline``: who computes and who waits in a run of the MATE runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import opt
from autotune.files import check_writable, write_text
from autotune.terminal.render import print_line, print_table
from autotune.wording import count, size_words


def timeline(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="what a MATE program wrote with --time-line FILE."),
    ],
    picture: Annotated[
        Path | None,
        opt("--picture FILE", "SVG file: a row for each worker, a colour for each rank."),
    ] = None,
) -> None:
    """Show who computes and who waits in a run of the MATE runtime."""
    from autotune.report.time_line import (
        cut_words,
        rank_messages,
        read_time_line,
        region_times,
        time_line_picture,
        worker_times,
    )

    if picture is not None:
        check_writable(picture)
    time_line = read_time_line(file)
    rows = [
        [
            f"{one.process}",
            f"{one.worker}",
            f"{len(one.ranks)}",
            f"{one.runs_s:.4f}",
            f"{one.waits_s:.4f}",
            f"{one.between_s:.4f}",
        ]
        for one in worker_times(time_line)
    ]
    print_table(
        f"{file}: seconds of each worker",
        [">process", ">worker", ">ranks", ">runs ranks", ">waits", ">between"],
        rows,
    )
    print_line("between: the runtime itself, and before the first and after the last rank")
    if regions := region_times(time_line):
        cells = [
            [
                one.name,
                f"{one.executions}",
                f"{one.total_s:.4f}",
                f"{1e6 * one.total_s / one.executions:.1f}",
                f"{1e6 * one.longest_s:.1f}",
            ]
            for one in regions
        ]
        columns = ["region", ">executions", ">seconds", ">mean, us", ">longest, us"]
        print_table("seconds of each region, in all ranks", columns, cells)
    if (partners := rank_messages(time_line)) is not None:
        total = sum(pair.messages for pair in partners.pairs)
        print_line(
            f"{count(total, 'message')} between {count(len(partners.nodes), 'rank')}, "
            f"{size_words(sum(pair.bytes for pair in partners.pairs))}, "
            f"{partners.far(partners.nodes):.0%} of them between processes "
            "(autotune report --time-line has the matrix)"
        )
    if words := cut_words(time_line):
        print_line(words)
    if picture is not None:
        write_text(picture, time_line_picture(time_line, f"{file.name}: who computes, who waits"))
        print_line(f"wrote {picture}", whole=True)
