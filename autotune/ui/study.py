"""The pages of one study: answer and proof, search, importance, and the runs with their output."""

from __future__ import annotations

import math
import shlex
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from autotune.anova.importance import importance, study_evidence
from autotune.anova.table import study_table
from autotune.api.importance import weights_figure
from autotune.api.live import is_active, live_state
from autotune.api.status import StudyStatus, state_of
from autotune.errors import AutotuneError, UsageError
from autotune.report.page import Section
from autotune.report.parallel import LINES, parallel_coordinates
from autotune.report.study import study_section
from autotune.store import Store, StoredRun, StudyRecord
from autotune.ui.figures import plain_section, plain_svg
from autotune.ui.site import Site, View, number
from autotune.wording import Metric, seconds, whole_number

RUNS = 50
"""Runs on one page."""


def find(site: Site, request: Request) -> StudyRecord:
    """The study whose hash is in the address; raises UsageError if it does not exist."""
    text = request.path_params["study"]
    if not all(c in "0123456789abcdef" for c in text) or len(text) < 8:
        raise UsageError(
            f"{text[:80]!r} is no study; expected at least 8 digits of a study's hash, as the "
            "list of studies links them",
            code="study.unknown",
        )
    return site.store.find_study(text)


def study_page(site: Site, request: Request) -> View:
    """Answer with its proof, course of the search, settings, origin."""
    study = find(site, request)
    state = state_of(site.store, study)
    counts = site.store.run_counts(study.id, "state")
    state_key = (study.id, study.status, sum(counts.values()), str(state.trials))
    section = site.memoise(("study", *state_key), lambda: _section(site.store, study))
    drawing = site.memoise(("parallel", *state_key), lambda: _parallel(site.store, study))
    return View(
        "study.html",
        _name(study),
        "/",
        {
            "study": study,
            "section": section,
            "parallel": drawing,
            "counts": counts,
            "state": state,
            "runs": sum(counts.values()),
            "live": _live(site.store, study, state),
        },
    )


def _live(store: Store, study: StudyRecord, state: StudyStatus) -> dict[str, Any] | None:
    """The progress of a study that runs; None for any other one."""
    if not is_active(store, study, state):
        return None
    return live_state(store, study)


def _section(store: Store, study: StudyRecord) -> Section:
    return plain_section(study_section(store, study, "Answer and proof"))


def _name(study: StudyRecord) -> str:
    app = study.key.app
    return f"{app.name}{f' {app.input}' if app.input else ''} on {study.key.ranks} ranks"


def _parallel(store: Store, study: StudyRecord) -> str:
    drawing = parallel_coordinates(store.best_trials(study.id, LINES))
    return plain_svg(drawing) if drawing else ""


def importance_page(site: Site, request: Request) -> View:
    """The importance of the parameters; ``?part`` is only the part loaded by the study's page."""
    study = find(site, request)
    runs = sum(site.store.run_counts(study.id, "state").values())
    key = ("importance", study.id, study.status, runs)
    section = site.memoise(key, lambda: _importance(site.store, study))
    whole = "part" not in request.query_params
    return View(
        "importance.html" if whole else "sections_only.html",
        f"Importance of the parameters in study {study.hash[:8]}",
        "/",
        {"sections": (section,), "study": study},
    )


def _importance(store: Store, study: StudyRecord) -> Section:
    """The shares of the parameters; a sentence if the runs show too little."""
    title = "Importance of the parameters"
    try:
        evidence = study_evidence(store, study)
        table = study_table(store, study)
        unused_names = set(evidence.unused) & set(table.names) - set(evidence.proven)
        result = importance(table.without(unused_names), 0, evidence.proven)
    except AutotuneError as problem:
        return Section(title, words=(f"{problem}.",))
    notes = [note.words for note in (*result.notes, table.unguarded) if note]
    words = (
        "How much of the differences between settings each parameter explains; blue: certain. "
        f"A model of {result.rows} settings."
    )
    return Section(
        title, words=(words,), notes=tuple(notes), figures=(plain_svg(weights_figure(result)),)
    )


def runs_page(site: Site, request: Request) -> View:
    """The runs of a study in order, one page of them."""
    study = find(site, request)
    counts = site.store.run_counts(study.id, "state")
    total = sum(counts.values())
    pages = max(-(-total // RUNS), 1)
    page = min(number(request, "page", 1), pages)
    return View(
        "runs.html",
        f"Runs of study {study.hash[:8]}",
        "/",
        {
            "study": study,
            "counts": counts,
            "rows": site.store.run_page(study.id, (page - 1) * RUNS, RUNS),
            "page": page,
            "pages": pages,
            "total": total,
        },
    )


def run_page(site: Site, request: Request) -> View:
    """One run: state, figures, command, read-back, output."""
    study = find(site, request)
    text = request.path_params["run"]
    run_id = whole_number(text, 2**31 - 1)
    if run_id is None:
        raise UsageError(f"{text[:40]!r} is no run; expected its number", code="store.row_unknown")
    run = site.store.run_of(study.id, run_id)
    return View(
        "run.html",
        f"Run {run.order} of study {study.hash[:8]}",
        "/",
        {
            "study": study,
            "record": run.record,
            "facts": _facts(run),
            # Numbers have gaps only if runs were lost, so this is the page or near it.
            "page": run.order // RUNS + 1,
        },
    )


def _facts(run: StoredRun) -> list[tuple[str, str]]:
    """The known facts of a run, as names and texts; unknown values are left out."""
    record = run.record
    facts = [
        ("state", record.state.replace("_", " ")),
        ("reason", record.reason),
        ("setting", run.setting_key),
        ("phase", run.phase),
        ("trial", "" if run.trial is None else str(run.trial)),
        ("figure that counts", Metric.of(record).words(record.value_s) if record.valid else ""),
        ("wall time", _time(record.wall_s)),
        ("CPU time", _time(record.cpu_s)),
        ("foreign load", _time(record.foreign_cpu_s)),
        ("tolerated", _time(record.foreign_limit_s)),
        ("started", _moment(record.started_at)),
        ("exit code", "" if record.exit_code is None else str(record.exit_code)),
        ("verified", "" if record.verified is None else "yes" if record.verified else "no"),
        ("host", record.host),
        ("MPI", f"{record.mpi_name} {record.mpi_version}".strip()),
        ("command", shlex.join(record.command)),
    ]
    return [(name, text) for name, text in facts if text]


def _time(value: float) -> str:
    return seconds(value) if math.isfinite(value) else ""


def _moment(value: float) -> str:
    if not 0 < value < 1e11:
        return ""
    return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC"
