"""``autotune importance``: which parameters mattered in a study or a dataset."""

from __future__ import annotations

from pathlib import Path

from autotune.api.analysis_requests import ImportanceRequest
from autotune.cli.anova import one_source
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.files import write_text
from autotune.terminal.importance import print_importance
from autotune.terminal.render import print_line, write_document


@takes_request
def importance_of(
    request: ImportanceRequest, store: StoreUrl = None, json_out: JsonOut = None
) -> None:
    """Estimate the importance of each parameter, with confidence intervals.

    --picture also shows how settings near the best one perform.
    """
    from autotune.api.importance import explain

    importance = explain(
        one_source(request.argument, request.source, "importance STUDY|DATASET"),
        store=store,
        cell=request.cell,
        features=None if request.features is None else Path(request.features),
        seed=request.seed,
    )
    picture = request.picture
    if picture is not None:
        write_text(Path(picture), importance.page())
    if write_document(importance.document, json_out):
        print_importance(importance, request.limit)
        if picture is not None:
            print_line(f"wrote {picture}")
