"""``--metric auto``: the figure of merit that a program prints, taken for its metric."""

from __future__ import annotations

import shlex

from autotune.api.run import one_run
from autotune.api.target import find_target, silent_say, to_stderr
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.store import Store
from autotune.targets.figures import FigureProposal, proposal_of
from autotune.targets.metric import default_failure, figure_lines
from autotune.targets.request import AUTO, TargetRequest
from autotune.targets.target import Target

DOCUMENT = "figure-of-merit"
"""The document of a study of one run: the options that read the figure of the program."""


def with_figure(
    request: TargetRequest, store: Store, say: Say = to_stderr, *, guard: bool = True
) -> TargetRequest:
    """The request with the metric of its program in the place of ``auto``.

    Patterns that the request names itself stay.  The program runs once with the default, unless
    such a run is in the database.  Raises UsageError if no figure of its output is certain,
    WorkError if the run fails.
    """
    if request.metric != AUTO:
        return request
    plain = request.model_copy(update={"metric": None, "metric_choice": None})
    target = find_target(plain, silent_say)
    if target.app.figure is not None:
        return request.model_copy(update={"metric": None})
    run = one_run("default", target, target.space(None), store, guard=guard)
    figure_record = None
    if store.has_study(run.key):
        figure_record = store.stored_document(store.study(run.key).id, DOCUMENT)
    if figure_record is None:
        say(
            Note(
                "metric.auto_run",
                f"one run shows what {target.app.name} prints",
                {"program": target.app.name},
            )
        )
        record = run.measure(say).record
        if not record.valid:
            raise default_failure("the run that shows what the program prints failed", record)
        proposal = proposal_of(record)
        if proposal is None or proposal.source:
            lines = "".join(f"\n{line}" for line in figure_lines(record))
            raise UsageError(
                f"--metric auto: no figure in the output of {target.app.name} is certain; expected "
                f"--metric RE or --metric-rate RE, or neither: then the wall time counts{lines}",
                code="metric.auto_none",
            )
        figure_record = store.store_document(store.study(run.key).id, DOCUMENT, _options(proposal))
    figure_request = plain.model_copy(
        update={
            "metric": figure_record["metric"],
            "metric_rate": figure_record["metric_rate"],
            "metric_choice": request.metric_choice or figure_record["metric_choice"],
            "verify": request.verify or figure_record["verify"],
            "verify_absent": request.verify_absent or figure_record["verify_absent"],
        }
    )
    options = {
        "--metric": figure_request.metric,
        "--metric-rate": figure_request.metric_rate,
        "--metric-choice": figure_request.metric_choice,
        "--verify": figure_request.verify,
        "--verify-absent": figure_request.verify_absent,
    }
    words = shlex.join(word for pair in options.items() if pair[1] for word in map(str, pair))
    who = f" ({figure_record['program']})" if figure_record["program"] else ""
    say(Note("metric.auto", f"metric of {target.app.name}{who}:\n  {words}", figure_record))
    return figure_request


def measured_target(
    request: TargetRequest, store: Store, say: Say = to_stderr, *, guard: bool = True
) -> Target:
    """The target of a request whose metric may be ``auto``; raises as :func:`with_figure`."""
    return find_target(with_figure(request, store, say, guard=guard), say)


def _options(proposal: FigureProposal) -> dict[str, str | None]:
    figure = proposal.figure
    return {
        "program": proposal.program,
        "metric": None if figure.rate else figure.metric,
        "metric_rate": figure.metric if figure.rate else None,
        "metric_choice": figure.choice,
        "verify": proposal.verify,
        "verify_absent": proposal.absent,
    }
