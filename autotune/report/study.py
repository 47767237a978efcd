"""The section of one study on a page: verdict, proof, search, and provenance."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from heapq import nsmallest

from autotune.measurement.result_checks import (
    MARK,
    StoredAnswer,
    checks_words,
    shown_lines,
    unchecked,
)
from autotune.measurement.run_history import CONFIRM, DEFAULT_KEY, is_timed
from autotune.report.figures import boxes, steps
from autotune.report.page import Copy, PageTable, Section
from autotune.store import Store, StudyRecord, TrialFigure
from autotune.store.model import HostRuns
from autotune.study.convergence import improvements
from autotune.study.library_sentences import switch_words
from autotune.study.screening_summary import screening_words, stored_summary
from autotune.study.search_result import Finalist, Result
from autotune.wording import (
    WHY_UNGUARDED,
    Metric,
    ParameterNames,
    interval_or_range,
    key_parts,
    percent,
    setting_lines,
    verdict_words,
)

TABLE_ROWS = 10
"""Number of settings in the table of trials."""


def study_section(store: Store, study: StudyRecord, title: str | None = None) -> Section:
    """The section of a study: verdict, proven setting, proof, course of the search, provenance."""
    trials, hosts = store.trial_figures(study.id), store.hosts(study.id)
    result = None
    if study.result is not None and "recommended" in study.result:
        result = Result.from_json(study.result)
    cheap = stored_summary(store, study)
    name = f"{study.key.app.name}{f' {study.key.app.input}' if study.key.app.input else ''}"
    drawings = [search_history(store, study.id, trials), _proof(store, study.id, result)]
    return Section(
        title or f"{name} on {study.key.ranks} ranks",
        verdict=_headline(study, result),
        words=(*_words(store, study, hosts, result), *([screening_words(cheap)] if cheap else [])),
        copies=tuple(_copies(result)),
        tables=(*_tables(trials, result), provenance(study, hosts)),
        figures=tuple(drawing for drawing in drawings if drawing),
        notes=() if result is None else tuple(map(result.names.within, _notes(result))),
    )


def _notes(result: Result) -> list[str]:
    """The objections with the lines of output concerned, and the warnings."""
    objections = [
        " ".join([f"[{note.code}] {note.words}", *(line.strip() for line in shown_lines(note))])
        for note in result.contradictions
    ]
    return [*objections, *(note.words for note in result.warnings)]


def _headline(study: StudyRecord, result: Result | None) -> str:
    if result is None:
        return f"No result yet (status {study.status})."
    return result.headline


def _words(
    store: Store, study: StudyRecord, hosts: Sequence[HostRuns], result: Result | None
) -> list[str]:
    by_phase = store.values(study.id, DEFAULT_KEY)
    values = [value for phase in by_phase if is_timed(phase) for value in by_phase[phase]]
    words = []
    if values:
        metric = _metric(store, study) if result is None else result.metric
        verb = "reaches" if metric.kind == "rate" else "takes"
        words.append(
            f"With the default, one run {verb} {metric.words(statistics.median(values))} "
            f"(median of {len(values)} runs)."
        )
    if result is not None:
        words.append(
            f"The search tried {result.trials} settings in {result.search_runs} runs. Then "
            f"{result.confirmation_runs} confirmation runs compared the best ones with the "
            f"default, interleaved, on fresh data. {result.runs_rejected} runs were "
            "rejected because other programs used the machine."
        )
        if result.ended_by:
            words.append(f"The search ended because of: {result.ended_by}.")
        words += map(result.names.within, result.evidence())
        words += _checks(study, result)
        if result.switch is not None:
            words += switch_words(result.switch)
        if not result.guard:
            words.append(WHY_UNGUARDED)
    # These runs exceed the guard's limit but count, so the guard was off.
    loaded_runs = sum(host.loaded for host in hosts)
    if loaded_runs:
        words.append(
            f"The guard was off: other programs used the machine in {loaded_runs} of the "
            f"{sum(host.runs for host in hosts)} runs that count."
        )
    return words


def _metric(store: Store, study: StudyRecord) -> Metric:
    """What the figures of a study without a result are."""
    last = store.last_run(study.id, "ok")
    return Metric.of(None if last is None else last.record)


def _checks(study: StudyRecord, result: Result) -> list[str]:
    """The checks of the results, and why the answer is unchecked."""
    reasons = unchecked(StoredAnswer.of_study(study))
    marks = [f"{MARK}: {note.words}." for note in reasons]
    if result.checks is None:
        return marks
    sentence = checks_words(result.checks)
    return [f"{sentence[0].upper()}{sentence[1:]}.", *marks]


def _copies(result: Result | None) -> list[Copy]:
    if result is None or result.status != "recommended":
        return []
    lines = [Copy("Setting", setting_lines(result.recommended.to_json()))]
    if start := result.start_line or result.mpirun:
        lines.append(Copy("How to start it", start))
    return lines


def _title(names: ParameterNames, finalist: Finalist) -> str:
    """Name and text of a long setting; notes use its name only."""
    name = names.name(finalist.setting.key)
    return f"{name}: {names.whole[name]}" if name in names.whole else name


def _tables(trials: list[TrialFigure], result: Result | None) -> list[PageTable]:
    tables = []
    if result is not None and result.finalists:
        names = result.names
        rows = tuple(
            (
                _title(names, f),
                percent(f.gain),
                interval_or_range(f.gain_ci, f.gain_range),
                str(f.blocks),
                verdict_words(f.verdict, f.words, result.guard),
            )
            for f in result.finalists
        )
        columns = ("setting", ">gain", ">95 % interval", ">pairs", "verdict")
        title = "Proof against the default" if result.guard else "Against the default, unproven"
        tables.append(PageTable(title, columns, rows))
    ended = (t for t in trials if t.estimate is not None)
    fastest = nsmallest(TABLE_ROWS, ended, key=lambda t: t.estimate or 0.0)
    trial_rows = tuple((" ".join(key_parts(t.key)), f"{t.estimate:.3f}", t.state) for t in fastest)
    if trial_rows:
        title = "Fastest settings of the search (time / time of the default; this is not a proof)"
        tables.append(PageTable(title, ("setting", ">time ratio", "state"), trial_rows))
    return tables


def provenance(study: StudyRecord, hosts: Sequence[HostRuns]) -> PageTable:
    """A table of where, when and with what the study was measured."""
    key = study.key
    memory = key.machine.memory_bytes / 2**30
    rows = [
        ("study", study.hash[:12]),
        ("begun", study.created_at[:16].replace("T", " ") + " UTC"),
        ("program", " ".join([key.app.program, *key.app.argv])),
        ("MPI", key.mpi_title),
        ("cluster", key.cluster),
        ("machine", f"{key.machine.cpu_model}, {key.machine.cores} cores, {memory:.0f} GiB"),
        ("hosts", ", ".join(one.host for one in hosts if one.host) or "-"),
        ("space", key.space_name),
        ("strategy", f"{key.strategy}, seed {key.seed}"),
        ("inherited settings", setting_lines(key.inherited) or "none"),
        ("autotune", study.tool_version),
        *(
            (f"ranks ran ({row['kind']})", f"{row['path']}, SHA-256 {row['sha256'][:12]}")
            for row in (study.result or {}).get("executables", [])
        ),
    ]
    return PageTable("Provenance", ("", ""), tuple(rows))


def search_history(store: Store, study_id: int, trials: list[TrialFigure]) -> str:
    """A figure of the best ratio so far over the search runs; empty if there was no search."""
    points = search_steps(store, study_id, trials)
    if not points:
        return ""
    title = "Best setting so far during the search (as measured, before the proof)"
    return steps({"best": points}, title, "search runs", "time / time of the default")


def search_steps(
    store: Store, study_id: int, trials: list[TrialFigure]
) -> list[tuple[float, float]]:
    """The best ratio after each number of search runs, where it changes; empty without a search."""
    return [(float(p.runs), p.ratio) for p in improvements(store.course(study_id), trials)]


def _proof(store: Store, study_id: int, result: Result | None) -> str:
    """A figure of every run of the proof: each finalist beside the default."""
    groups = {} if result is None else proof_ratios(store, study_id)
    if len(groups) < 2:
        return ""
    names = _short(groups)
    named_groups = {names[key]: values for key, values in groups.items()}
    legend = "time / median time of the default"
    return boxes("Runs of the proof", legend, named_groups, reference=1.0)


def proof_ratios(store: Store, study_id: int) -> dict[str, list[float]]:
    """Seconds of each setting's confirmation runs divided by the default's median in that phase."""
    runs = store.runs(study_id, phases=[CONFIRM], states=["ok"], brief=True)
    values = [(run.setting_key, run.record.value_s) for run in runs if is_timed(run.phase)]
    defaults = [value for key, value in values if key == DEFAULT_KEY]
    if not defaults:
        return {}
    middle = statistics.median(defaults)
    groups: dict[str, list[float]] = {DEFAULT_KEY: []}
    for key, value in values:
        groups.setdefault(key, []).append(value / middle)
    return groups


def _short(keys: Mapping[str, object]) -> dict[str, str]:
    """A different label of bounded length for each setting."""
    names: dict[str, str] = {}
    for number, key in enumerate(keys):
        label = key if len(key) <= 40 else f"{number}: {key[:32]}…"
        names[key] = label
    return names
