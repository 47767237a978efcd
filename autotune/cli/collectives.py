"""``autotune collectives``: proven tables of the best algorithms."""

from __future__ import annotations

from autotune.api.requests import CollectivesRequest
from autotune.cli.options import JsonOut, StoreUrl, rank_counts
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.terminal.collectives import print_collectives
from autotune.terminal.render import (
    INTERRUPTION_NOTE,
    interruption,
    print_line,
    to_stderr,
    write_document,
)


@takes_request
def collectives(
    request: CollectivesRequest, store: StoreUrl = None, json_out: JsonOut = None
) -> None:
    """Find the best algorithm of each collective by ranks and message size, and prove the table.

    To publish a proven table: autotune publish --from collectives:ID
    """
    from autotune.api.target import find_target
    from autotune.collectives.algorithm_tables import TABLES
    from autotune.collectives.tables import SIZES, TableTerms, find_tables, with_ranks
    from autotune.store import Store
    from autotune.terminal.progress import Progress

    operations = [word.strip() for word in request.operations.split(",") if word.strip()]
    sizes = SIZES if request.sizes is None else _sizes(request.sizes)
    counts = rank_counts(request.ranks)
    target_request = request.target.model_copy(
        update={"app": "micro", "ranks": counts[0], "commutative_only": False}
    )
    targets = with_ranks(find_target(target_request), counts)
    with Store.open(store) as database, Progress(None, None, True) as progress:
        terms = TableTerms(
            store=database,
            sizes=sizes,
            pairs=request.pairs,
            min_gain=request.min_gain,
            seed=request.seed,
            guard=request.guard,
            watch=progress,
            say=to_stderr,
            budget_s=request.budget_s,
            multi_object=request.multi_object,
            commutative_only=request.target.commutative_only,
        )
        with interruption(INTERRUPTION_NOTE):
            result = find_tables(targets, operations, terms)
    path = TABLES.save(result)
    if write_document(result.to_json(), json_out):
        print_collectives(result)
        print_line(f"result collectives:{result.id}  ({path})", whole=True)


def _sizes(text: str) -> tuple[int, ...]:
    from runner.message_sizes import sizes as parse_sizes

    try:
        sizes = tuple(sorted(set(parse_sizes(text))))
    except ValueError as problem:
        raise UsageError(f"--sizes {text!r}: {problem}", code="collectives.sizes") from None
    if len(sizes) < 2 or sizes[0] < 1:
        raise UsageError(
            f"--sizes {text!r}: expected at least two different sizes of 1 byte or more, "
            "such as 8,64,1k or 8:1m",
            code="collectives.sizes",
        )
    return sizes
