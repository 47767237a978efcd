"""``autotune collectives``: proven tables of the best algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.api.requests import CollectivesRequest
from autotune.cli.options import JsonOut, StoreUrl, rank_counts
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.terminal.render import (
    print_line,
    print_message,
    print_table,
    write_json,
)
from autotune.wording import (
    HEADLINES,
    WHY_UNGUARDED,
    interval,
    percent,
    verdict_words,
)

if TYPE_CHECKING:
    from autotune.collectives.result import CollectiveResult, TablePart


@takes_request
def collectives(
    request: CollectivesRequest, store: StoreUrl = None, json_out: JsonOut = None
) -> None:
    """Find the best algorithm of each collective by ranks and message size, and prove the table.

    To publish a proven table: autotune publish --from collectives:ID
    """
    from autotune.api.target import find_target
    from autotune.collectives.result import TABLES
    from autotune.collectives.tables import SIZES, TableTerms, find_tables, with_ranks
    from autotune.store import Store
    from autotune.terminal.progress import Progress

    chosen = [word.strip() for word in request.operations.split(",") if word.strip()]
    wanted = SIZES if request.sizes is None else _sizes(request.sizes)
    counts = rank_counts(request.ranks)
    asked = request.target.model_copy(
        update={"app": "micro", "ranks": counts[0], "commutative_only": False}
    )
    targets = with_ranks(find_target(asked), counts)
    with Store.open(store) as opened, Progress(None, None, True) as progress:
        terms = TableTerms(
            store=opened,
            sizes=wanted,
            pairs=request.pairs,
            min_gain=request.min_gain,
            seed=request.seed,
            guard=request.guard,
            watch=progress,
            say=lambda note: print_message(note.words),
            budget_s=request.budget_s,
            multi_object=request.multi_object,
            commutative_only=request.target.commutative_only,
        )
        try:
            result = find_tables(targets, chosen, terms)
        except KeyboardInterrupt:
            print_message("Interrupted. Every finished run is stored; the same command continues.")
            raise
    path = TABLES.save(result)
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        _print(result)
        print_line(f"result collectives:{result.id}  ({path})", whole=True)


def _sizes(text: str) -> tuple[int, ...]:
    from runner.message_sizes import sizes as parse_sizes

    try:
        found = tuple(sorted(set(parse_sizes(text))))
    except ValueError as problem:
        raise UsageError(f"--sizes {text!r}: {problem}", code="collectives.sizes") from None
    if len(found) < 2 or found[0] < 1:
        raise UsageError(
            f"--sizes {text!r}: expected at least two different sizes of 1 byte or more, "
            "such as 8,64,1k or 8:1m",
            code="collectives.sizes",
        )
    return found


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
    found = part.multi_object
    if found is None:
        return
    print_line(
        f"{part.operation} on {part.ranks} ranks, the library and several senders on each node "
        f"(mcoll), in {found.blocks} blocks",
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
        for row in found.rows
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
    if found.switches:
        said = ",".join(f"{name}={value}" for name, value in found.switches.items())
        print_line(
            "switches of the fastest forms (not compared as a whole); to publish them:\n"
            f"  python -P -m runner.runtimes.intranode.publish --library mcoll --from {said}",
            whole=True,
        )


def _print(result: CollectiveResult) -> None:
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
