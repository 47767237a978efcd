"""The page of a cluster: studies, class-wide setting, rules tables and level means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from autotune.anova.classwide_result import RESULTS, ClasswideResult
from autotune.anova.factors import judge_factors
from autotune.anova.oneway import respond
from autotune.anova.table import read_table
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult
from autotune.errors import UsageError
from autotune.measurement.result_checks import MARK, StoredAnswer, unchecked
from autotune.measurement.run_history import DEFAULT_KEY
from autotune.notes import Note
from autotune.publish.verify import PublishedFile, proven_with, published_files
from autotune.report.figures import Mark, boxes, dots, heat_map, level_means
from autotune.report.page import Copy, PageTable, Section
from autotune.report.study import proof_ratios, study_section
from autotune.store import Store, StudyRecord, StudySummary
from autotune.study.search_result import Result
from autotune.wording import (
    HEADLINES,
    UNGUARDED,
    binary,
    count,
    interval,
    percent,
    setting_lines,
    short_setting,
    verdict_words,
)

_MAX_FACTORS = 6
"""Number of parameters whose level means are drawn."""
_OWN = "the library's own"


def cluster_sections(store: Store, name: str, dataset: str | None) -> list[Section]:
    """The sections: overview, published files, class-wide setting, collectives, means, studies.

    Raises UsageError if nothing was measured on this cluster.
    """
    studies = answered_studies(store, name)
    sections = [*known_sections(store, name, studies)]
    if dataset is not None:
        sections.append(dataset_section(dataset))
    if not sections:
        raise UsageError(
            f"cluster {name} has no finished search and no class-wide result in "
            f"{store.label}; autotune studies lists the studies",
            code="page.nothing_to_show",
        )
    return [*sections, *(study_section(store, study) for study, _ in studies)]


def known_sections(
    store: Store, name: str, studies: list[tuple[StudyRecord, Result]]
) -> list[Section]:
    """The known facts of a cluster: overview of ``studies``, published files, class,
    collectives."""
    left_out: list[Note] = []
    result = RESULTS.latest(name, say=left_out.append)
    tables = TABLES.latest(name, say=left_out.append)
    sections = [_overview(store, studies)] if studies else []
    if files := [one for one in published_files()[0] if one.header.cluster == name]:
        sections.append(published_section(files))
    if result is not None:
        sections.append(classwide_section(result))
    if tables is not None:
        sections.append(collectives_section(tables))
    if left_out and sections:
        notes = tuple(note.words for note in left_out)
        sections.append(Section("Results that cannot be read", notes=notes))
    return sections


def answered_studies(
    store: Store, cluster: str, summaries: Iterable[StudySummary] | None = None
) -> list[tuple[StudyRecord, Result]]:
    """The listed searches on the cluster that have a result, in order.

    Without a list: all searches, the newest first.
    """
    study_ids = [
        summary.id
        for summary in (store.studies() if summaries is None else summaries)
        if summary.cluster == cluster and summary.status in HEADLINES
    ]
    return [
        (study, Result.from_json(study.result))
        for study in store.study_records(study_ids)
        if study.result is not None and "recommended" in study.result
    ]


def _overview(store: Store, studies: list[tuple[StudyRecord, Result]]) -> Section:
    rows, marks, groups = [], [], {}
    names = Counter(_label(study) for study, _ in studies)
    for study, result in studies:
        label = _label(study)
        if names[label] > 1:  # another seed, another space: both are shown
            label = f"{label} ({study.hash[:8]})"
        low, high = result.gain_ci or (None, None)
        rows.append(
            (
                label,
                result.metric.words(result.default.get("median_s")),
                percent(result.gain),
                interval(result.gain_ci),
                result.status.replace("_", " ") + _mark_of(study),
                str(result.search_runs + result.confirmation_runs),
                study.hash[:8],
            )
        )
        if result.gain is not None:
            marks.append(_mark(label, (result.gain, low, high), "", result.significant))
        ratios = proof_ratios(store, study.id)
        if result.status == "recommended" and result.recommended.key in ratios:
            groups[f"{label}, default"] = ratios[DEFAULT_KEY]
            groups[f"{label}, tuned"] = ratios[result.recommended.key]
    columns = ("program", ">default", ">gain", ">95 % interval", "answer", ">runs", "study")
    figures = []
    if marks:
        figures.append(dots("Proven gain of each program with its own setting", "gain, %", marks))
    if groups:
        legend = "time / median time of the default"
        figures.append(boxes("Runs of the proofs", legend, groups, reference=1.0))
    proven_count = sum(result.status == "recommended" for _, result in studies)
    words = (
        f"{proven_count} of {len(studies)} searches found a setting that is proven to be "
        "faster; in the others the default is kept or nothing is decided."
    )
    table = PageTable("Searches for single programs", columns, tuple(rows))
    return Section("Measurements", words=(words,), tables=(table,), figures=tuple(figures))


def _mark_of(study: StudyRecord) -> str:
    """The mark of an answer with unverified results."""
    return f", {MARK}" if unchecked(StoredAnswer.of_study(study)) else ""


def _label(study: StudyRecord) -> str:
    app = study.key.app
    return f"{app.name}{f' {app.input}' if app.input else ''} {study.key.ranks}x"


def _mark(label: str, gain: Sequence[float | None], note: str, highlight: bool) -> Mark:
    """A gain and the ends of its interval, as a mark in percent."""
    value, low, high = (math.nan if v is None else 100 * v for v in gain)
    return Mark(label, value, low, high, note, highlight)


def classwide_section(result: ClasswideResult) -> Section:
    """The setting for the class with its evidence on every program."""
    interval_text = interval((result.lo, result.hi))
    ends = f" ({interval_text})" if interval_text else ""
    answer = {
        "recommended": f"One setting for all: {percent(result.gain)} on average{ends}.",
        "keep_default": "One setting for all: keep the default.",
        "unproven": "One setting for all: chosen from recorded runs, not proven.",
        "unguarded": f"One setting for all: {UNGUARDED}, not proven.",
    }[result.status]
    rows = tuple(
        (
            f"{e.app}{f' {e.input}' if e.input else ''} {e.ranks}x",
            "held out" if e.held_out else "",
            percent(e.gain),
            interval((e.lo, e.hi)),
            str(e.pairs),
            verdict_words(e.verdict),
        )
        for e in result.evidence
    )
    columns = ("program", "", ">gain", ">95 % interval", ">pairs", "verdict")
    marks = [
        _mark(row[0], (e.gain, e.lo, e.hi), row[1], (e.lo or 0.0) > 0)
        for row, e in zip(rows, result.evidence, strict=True)
    ]
    values = result.setting.to_json()
    words = [result.why] if result.why else []
    if result.margin is not None:
        words.append(f"passed: shown to be at most {100 * result.margin:g} % slower.")
    pruning = []
    if result.not_pruned:
        pruning = [f"not pruned: {', '.join(result.not_pruned)} (no effect shown)"]
    words.append(
        f"Chosen from {result.source} (method {result.method}); {result.mpi.get('name', '')} "
        f"{result.mpi.get('version', '')}, {result.date[:10]}, classwide:{result.id}."
    )
    return Section(
        "One setting for the class",
        verdict=answer,
        words=tuple(words),
        copies=(Copy("Setting", setting_lines(values)),) if values else (),
        tables=(PageTable("Proof on every program", columns, rows),) if rows else (),
        figures=(dots("Gain of the class's setting", "gain, %", marks),) if marks else (),
        notes=(*(note.words for note in result.warnings), *pruning),
    )


def published_section(files: Sequence[PublishedFile]) -> Section:
    """The files that this user has published for the cluster, and which of them have expired."""
    rows, notes = [], []
    for one in files:
        evidence = one.header.evidence
        expiry = one.expiry
        rows.append(
            (
                str(one.path),
                evidence.source,
                percent(evidence.gain),
                " ".join(proven_with(one.header)),
                "" if expiry is None else f"expired: installed is {expiry.installed_version}",
            )
        )
        if expiry is not None:
            notes.append(f"{one.path}: {expiry.words}; {expiry.advice}.")
    expired_count = sum(one.expiry is not None for one in files)
    summary = (
        f"{expired_count} of {count(len(files), 'published file')} expired."
        if expired_count
        else ""
    )
    columns = ("file", "evidence", ">gain", "proven with", "")
    table = PageTable("Files in use", columns, tuple(rows))
    return Section("Published settings", verdict=summary, tables=(table,), notes=tuple(notes))


def collectives_section(result: CollectiveResult) -> Section:
    """A heat map for each operation: the algorithm at each size, and its gain."""
    drawings = []
    for operation in dict.fromkeys(part.operation for part in result.parts if part.has_changes):
        parts = [p for p in result.parts if p.operation == operation and p.evidence]
        columns = sorted({row.size for p in parts for row in p.evidence if not row.between})
        kinds, words = [], []
        for part in parts:
            rows_by_size = {row.size: row for row in part.evidence}
            names = [result.algorithm(part, size) for size in columns]
            kinds.append([_OWN if name == "-" else name for name in names])
            words.append(
                [
                    ""
                    if name == "-" or size not in rows_by_size
                    else f"{rows_by_size[size].gain * 100:+.0f}"
                    for name, size in zip(names, columns, strict=True)
                ]
            )
        drawings.append(
            heat_map(
                f"{operation}: algorithm and gain in %",
                "bytes",
                "ranks",
                [binary(size) for size in columns],
                [str(part.ranks) for part in parts],
                kinds,
                words,
                _OWN,
            )
        )
    proven_count = sum(part.has_changes for part in result.parts)
    sure = "are proven to be" if result.guarded else "look"
    sentence = (
        f"{proven_count} of {len(result.parts)} tables have entries that {sure} faster than "
        f"the library's own choice; {result.mpi['name']} {result.mpi['version']}, "
        f"{result.date[:10]}, collectives:{result.id}."
    )
    if not result.guarded:
        sentence += f"  {HEADLINES['unguarded']}"
    return Section("Collectives", words=(sentence,), figures=tuple(drawings))


def dataset_section(name: str) -> Section:
    """Level means of the parameters that matter in a recorded dataset."""
    runs_table = read_table(name)
    factors = judge_factors(respond(runs_table, "log"))
    drawings = level_means(factors, "log")[:_MAX_FACTORS]
    best = {f.name: f.best for f in factors if f.significant}
    sentence = "No parameter has a certain effect."
    if best:
        sentence = f"Parameters with a certain effect and their best levels: {short_setting(best)}."
    how = (
        f"{runs_table.origin}: {len(runs_table.cells)} cells, {len(runs_table.names)} parameters, "
        "one-way analysis of variance at 99.9 % confidence."
    )
    return Section("Level means", words=(how, sentence), figures=tuple(drawings))
