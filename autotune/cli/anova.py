"""``autotune anova``: which parameters matter for a class of programs, and their best levels."""

from __future__ import annotations

from pathlib import Path

from autotune.api.analysis_requests import AnovaRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.anova import print_analysis, print_parts
from autotune.terminal.render import print_line, print_note, write_document


@takes_request
def anova(request: AnovaRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Find the parameters that matter over all programs, and the best level of each (ANOVA)."""
    from autotune.api.anova import analyse, read_options

    source = one_source(request.argument, request.source, "anova DATASET")
    options = read_options(request.preset, request.model, request.level, request.correction)
    analysis = analyse(
        source,
        options,
        response=request.response,
        by=request.by,
        pairs=request.pairs,
        joint=request.joint,
        store=store,
    )
    picture = request.picture
    if picture is not None:
        write_text(Path(picture), analysis.page())
    if write_document(analysis.document, json_out):
        print_analysis(analysis)
        print_parts(analysis.parts, analysis.factors)
        for note in analysis.notes:
            print_note(note)
        if picture is not None:
            print_line(f"wrote {picture}")


def one_source(argument: str | None, option: str | None, example: str) -> str:
    """The source, given as argument or with ``--from``; raises UsageError for none or both."""
    if argument is not None and option is not None and argument != option:
        raise UsageError(
            f"two sources given: {argument} and --from {option}; give only one of them",
            code="usage.source",
        )
    source = argument if argument is not None else option
    if source is None:
        raise UsageError(
            f"no recorded runs given; expected autotune {example} (autotune dataset list "
            "names the datasets)",
            code="usage.source",
        )
    return source
