"""Terminal output of tables of collective operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_table
from autotune.wording import HEADLINES, WHY_UNGUARDED, interval, percent, verdict_words

if TYPE_CHECKING:
    from autotune.collectives.algorithm_tables import CollectiveResult, TablePart


def _print_table(result: CollectiveResult, part: TablePart) -> None:
    if not part.has_changes:
        print_line("no table is proven; the library's own choice stands")
        return
    rows = [
        [
            str(row.size) + (" *" if row.between else ""),
            result.algorithm(part, row.size),
            percent(row.gain),
            interval((row.lo, row.hi)),
            verdict_words(row.verdict, has_guard=result.guarded),
        ]
        for row in part.evidence
    ]
    columns = [
        ">bytes",
        "proven" if result.guarded else "found",
        ">gain",
        ">interval",
        "verdict",
    ]
    print_table("", columns, rows)


def _print_rivals(result: CollectiveResult, part: TablePart) -> None:
    """The comparison with several objects on each node, if there is one."""
    comparison = part.multi_object
    if comparison is None:
        return
    print_line(
        f"{part.operation} on {part.ranks} ranks, the library and several senders on each node "
        f"(mcoll), in {comparison.blocks} blocks",
        bold=True,
    )
    rows = [
        [
            str(row.size),
            f"{row.default_us:.1f}",
            f"{row.library_us:.1f} {result.algorithm(part, row.size)}",
            "failed" if row.mcoll_us is None else f"{row.mcoll_us:.1f} {row.form}",
            f"{row.ratio:.2f}",
            "" if row.lo is None or row.hi is None else f"{row.lo:.2f} .. {row.hi:.2f}",
            row.winner,
        ]
        for row in comparison.rows
    ]
    columns = [
        ">bytes",
        ">default us",
        "library us",
        "mcoll us",
        ">ratio",
        ">interval",
        "winner",
    ]
    print_table("", columns, rows)
    print_line("ratio: the library's time / that of mcoll; no winner: not decided")
    if comparison.switches:
        switches = ",".join(f"{name}={value}" for name, value in comparison.switches.items())
        print_line(
            "switches of the fastest forms (not compared as a whole); to publish them:\n"
            f"  python -P -m runner.runtimes.intranode.publish --library mcoll --from {switches}",
            whole=True,
        )


def print_collectives(result: CollectiveResult) -> None:
    """Print the table of each operation, with its proof."""
    for part in result.parts:
        print_line()
        print_line(
            f"{part.operation} on {part.ranks} ranks: measured {part.points} of "
            f"{part.grid} points of the full grid ({part.points / part.grid:.0%}); "
            f"{part.launches} launches including the proof",
            bold=True,
        )
        _print_table(result, part)
        _print_rivals(result, part)
    if result.left_out:
        print_line(
            f"\nThe budget was spent before {', '.join(result.left_out)}. The same command "
            "with a larger --budget continues."
        )
    if not result.guarded:
        print_line()
        print_line(HEADLINES["unguarded"], bold=True)
        print_line(WHY_UNGUARDED)
    print_line(
        "\n* size between two sizes that were searched; the intervals hold for all sizes together"
    )
