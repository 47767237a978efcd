"""Two studies side by side: their differences, both answers, and the course of both searches."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request

from autotune.errors import UsageError
from autotune.report.figures import Mark, dots, steps
from autotune.report.page import PageTable, Section
from autotune.report.study import search_steps, study_section
from autotune.store import Store, StudyQuery, StudyRecord
from autotune.study.search_result import Result
from autotune.ui.figures import plain_section, plain_svg
from autotune.ui.site import Site, View
from autotune.wording import setting_lines

MAX_CHOICES = 100
"""Number of the newest studies that can be chosen on the page itself."""


def comparison_page(site: Site, request: Request) -> View:
    """Two studies, or a form to choose them."""
    hashes = [name for name in request.query_params.getlist("study") if name]
    if len(hashes) > 2:
        raise UsageError(f"{len(hashes)} studies were chosen; expected two", code="study.unknown")
    for name in hashes:
        if not all(c in "0123456789abcdef" for c in name):
            raise UsageError(
                f"{name[:80]!r} is no study; expected digits of a study's hash",
                code="study.unknown",
            )
    studies = [site.store.find_study(name) for name in hashes]
    candidates = site.store.study_page(StudyQuery(size=MAX_CHOICES)).rows
    values: dict[str, Any] = {
        "offered": candidates,
        "chosen": [study.hash for study in studies],
        "sides": (),
    }
    if len(studies) == 2:
        counts = [sum(site.store.run_counts(s.id, "state").values()) for s in studies]
        key = ("compare", *(s.id for s in studies), *(s.status for s in studies), *counts)
        sides, both = site.memoise(key, lambda: _compare(site.store, studies))
        values |= {"sides": sides, "both": both}
    return View("compare.html", "Two studies side by side", "/compare", values)


def _compare(
    store: Store, studies: list[StudyRecord]
) -> tuple[tuple[tuple[StudyRecord, Section], ...], Section]:
    sides = tuple(
        (study, plain_section(study_section(store, study, f"{letter}: study {study.hash[:8]}")))
        for letter, study in zip("AB", studies, strict=True)
    )
    return sides, _both(store, studies)


def _both(store: Store, studies: list[StudyRecord]) -> Section:
    """The differences of the studies, and figures of both."""
    lines, marks = {}, []
    for letter, study in zip("AB", studies, strict=True):
        points = search_steps(store, study.id, store.trial_figures(study.id))
        if points:
            lines[letter] = points
        if study.result is not None and "recommended" in study.result:
            result = Result.from_json(study.result)
            if result.gain is not None:
                low, high = result.gain_ci or (None, None)
                marks.append(_mark(letter, result.gain, low, high, result.significant))
    figures = []
    if marks:
        figures.append(dots("Proven gain", "gain over the default, %", marks))
    if lines:
        title = "Best setting so far during the search (as measured, before the proof)"
        figures.append(steps(lines, title, "search runs", "time / time of the default"))
    rows = tuple(_differences(*studies))
    table = PageTable("What differs", ("", "A", "B"), rows)
    same_program = studies[0].key.app.hash == studies[1].key.app.hash
    why = (
        "The gains of two studies were measured at different times, each against the default of "
        "its own time. To learn which of two settings is faster, measure both in pairs: "
        "autotune compare."
    )
    words = [why]
    if not same_program:
        words.append("The studies are of different programs.")
    return Section(
        "Both studies",
        words=tuple(words),
        tables=(table,) if rows else (),
        figures=tuple(map(plain_svg, figures)),
    )


def _mark(letter: str, value: float, low: float | None, high: float | None, sure: bool) -> Mark:
    low, high = (math.nan if end is None else 100 * end for end in (low, high))
    return Mark(letter, 100 * value, low, high, "", sure)


def _differences(a: StudyRecord, b: StudyRecord) -> list[tuple[str, str, str]]:
    """The parts of the keys that differ, as name, A and B."""
    rows = [(name, _facts(a)[name], _facts(b)[name]) for name in _facts(a)]
    return [row for row in rows if row[1] != row[2]]


def _facts(study: StudyRecord) -> dict[str, str]:
    key = study.key
    return {
        "program": " ".join([key.app.program, *key.app.argv]),
        "program's hash": key.app.program_hash[:12],
        "input": key.app.input or "-",
        "ranks": str(key.ranks),
        "MPI": key.mpi_title,
        "machine": f"{key.machine.cpu_model}, {key.machine.cores} cores",
        "cluster": key.cluster,
        "space": f"{key.space_name} {key.space_hash[:8]}",
        "strategy": key.strategy,
        "seed": str(key.seed),
        "inherited settings": setting_lines(key.inherited) or "none",
        "guard": "on" if key.has_guard else "off",
        "begun": study.created_at[:16].replace("T", " "),
    }
