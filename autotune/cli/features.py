"""``autotune features``: writes the features of a program from one traced run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from autotune.api.requests import FeaturesRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.files import check_writable, write_text
from autotune.terminal.features import print_feature_list, print_features
from autotune.terminal.render import (
    note_line,
    print_line,
    print_message,
    write_document,
    write_json,
)


@takes_request
def features(request: FeaturesRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Trace one run of a program and write its communication features (app_features.json).

    The features are also stored in the results database: a search of the program then begins with
    predicted settings.
    """
    from autotune.api.feature_documents import TracedFeatures, feature_list
    from autotune.api.features import keep_features, traced_features
    from autotune.api.figures import measured_target
    from autotune.store import Store
    from autotune.targets.metric import failure_lines
    from runner.trace.talp import talp_document

    if request.explain:
        rows = feature_list()
        if write_document(rows, json_out):
            print_feature_list(rows)
        return
    out, guard = Path(request.out), request.guard
    for path in (out, *([Path(request.talp)] if request.talp else [])):
        check_writable(path)
    with Store.open(store) as database:
        target = measured_target(request.target, database, guard=guard)
        program_features, traced_run = traced_features(target, request.method, guard)
        program_features.save(out)
        keep_features(program_features, traced_run, target, database)
    if request.talp:
        started = datetime.fromtimestamp(traced_run.record.started_at, UTC)
        document = talp_document(traced_run.ranks, started.isoformat(timespec="seconds"))
        write_text(Path(request.talp), json.dumps(document, indent=1) + "\n")
    if json_out:
        content = program_features.to_json() | {"mpi_choice": target.choice_row}
        write_json(TracedFeatures.model_validate(content), json_out)
    has_metric = request.target.metric or request.target.metric_rate
    if has_metric and traced_run.record.state == "no_metric":
        for line in (
            note_line("metric.none", traced_run.record.reason),
            *failure_lines(traced_run.record),
        ):
            print_message(line)
    if json_out != "-":
        print_features(program_features, traced_run)
        print_line(f"features written to {out}", whole=True)
