"""Importance: which parameters mattered in a study or a dataset, with the study's proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from autotune.anova.importance import (
    Importance,
    NeighbourSetting,
    PairImportance,
    ParameterEvidence,
    around_best,
    best_cells,
    importance,
    study_evidence,
)
from autotune.anova.table import STUDY, RunTable, read_table
from autotune.api.features import read_features
from autotune.datasets import load
from autotune.datasets.catalog import is_known
from autotune.document import Document
from autotune.errors import UsageError, WorkError
from autotune.json_types import Number
from autotune.notes import Note
from autotune.report.figures import Mark, bars, dots
from autotune.report.page import drawn_page
from autotune.store import Store
from autotune.wording import percent
from runner.files.paths import is_folder
from runner.types import finite

LANDSCAPES = 3
DRAWINGS = 4


class ImportanceRow(Document):
    """The importance of a parameter: shares of the variance, with 95 % intervals."""

    name: str
    alone: Number
    alone_lo: Number
    alone_hi: Number
    shuffled: Number
    shuffled_lo: Number
    shuffled_hi: Number
    pearson: Number | None
    spearman: Number | None
    proven: bool
    certain: bool


class NeighbourRow(Document):
    """A setting that differs from the best one in one parameter."""

    parameter: str
    level: str
    ratio: Number | None
    measured: bool
    here: bool


class ImportanceDocument(Document):
    """The importance of each parameter."""

    schema_: Literal["autotune-importance-1"] = Field(
        default="autotune-importance-1", alias="schema"
    )
    source: str
    cells: list[str]
    rows: int
    r2_unseen: Number | None
    proven_gain: Number | None
    taken_out: list[str]
    unused: list[str]
    parameters: list[ImportanceRow]
    pairs: tuple[PairImportance, ...]
    around_best: dict[str, list[NeighbourRow]]
    notes: list[Note]


@dataclass(frozen=True)
class ImportanceAnalysis:
    """The importance of parameters with its sources.  ``near`` maps cells to the settings near
    their best one.  ``unused`` are parameters that act on nothing that the program uses."""

    table: RunTable
    result: Importance
    evidence: ParameterEvidence
    near: dict[str, list[NeighbourSetting]]
    unused: tuple[str, ...]

    @property
    def notes(self) -> list[Note]:
        """Further notes for the reader."""
        table = self.table
        return [note for note in (*self.result.notes, table.unguarded, *table.damaged) if note]

    @property
    def document(self) -> ImportanceDocument:
        """What ``--json`` writes."""
        result, evidence = self.result, self.evidence
        return ImportanceDocument(
            source=self.table.origin,
            cells=list(self.table.cells),
            rows=result.rows,
            r2_unseen=result.r2,
            proven_gain=evidence.gain if evidence.proven else None,
            taken_out=list(evidence.taken_out),
            unused=list(self.unused),
            parameters=[ImportanceRow(**vars(m), certain=m.certain) for m in result.parameters],
            pairs=result.pairs,
            around_best={
                key: [NeighbourRow(**(vars(n) | {"ratio": finite(n.ratio)})) for n in steps]
                for key, steps in self.near.items()
            },
            notes=self.notes,
        )

    def page(self) -> str:
        """The figures as one HTML page."""
        return _page(self.table, self.result, self.near)


def explain(
    source: str,
    *,
    store: str | None = None,
    cell: str | None = None,
    features: Path | None = None,
    seed: int = 0,
) -> ImportanceAnalysis:
    """Compute the importance of parameters in a dataset (its name) or a study (its number or hash).

    ``cell``: use only this cell of a dataset.  ``features``: leave out parameters that act on
    nothing that the traced program uses.  Raises UsageError for an unknown source or cell,
    WorkError if the runs show too little.
    """
    source_name = _source(source)
    table = read_table(source_name, store)
    if cell is not None:
        table = _only(table, cell)
    evidence = _evidence(source_name, store)
    unused = {*evidence.unused, *_unused_by_program(source_name, table, features)} - set(
        evidence.proven
    )
    unused &= set(table.names)
    table = table.without(unused)
    try:
        result = importance(table, seed, evidence.proven)
    except WorkError as problem:
        if not evidence.proven:
            raise
        raise WorkError(f"{problem}.\n{_proof_words(evidence)}", code=problem.code) from None
    names = [m.name for m in result.parameters[:DRAWINGS]]
    near = {key: around_best(table, key, names, seed) for key in best_cells(table, LANDSCAPES)}
    return ImportanceAnalysis(table, result, evidence, near, tuple(sorted(unused)))


def _source(text: str) -> str:
    """The source as a dataset if there is one with that name, else as a study."""
    if text.startswith(STUDY):
        return text
    if is_known(text):
        return text
    return text if is_folder(text) else f"{STUDY}{text}"


def _evidence(source: str, store: str | None) -> ParameterEvidence:
    """What the proof and the read-back of a study showed; empty for a dataset."""
    if not source.startswith(STUDY):
        return ParameterEvidence()
    with Store.open_to_read(store) as database:
        return study_evidence(database, database.find_study(source.removeprefix(STUDY)))


def _unused_by_program(source: str, table: RunTable, features: Path | None) -> tuple[str, ...]:
    """Parameters that act on nothing in the traced program.  The features come from the given file,
    else from those of a dataset if it has them for each of the cells."""
    from autotune.prediction.examples import stored_features
    from autotune.prediction.exposure import unused_parameters
    from autotune.prediction.scorer import model_values

    if features is not None:
        programs = [read_features(features)]
    elif source.startswith(STUDY):
        return ()
    else:
        dataset = load(source)
        cells = [stored_features(dataset, dataset.cell(key)) for key in table.cells]
        programs = [one for one in cells if one is not None]
        if len(programs) < len(cells):
            return ()
    return unused_parameters(table.names, [model_values(one) for one in programs])


def _proof_words(evidence: ParameterEvidence) -> str:
    return (
        f"The proof of the study shows it nevertheless: {', '.join(evidence.proven)} "
        f"{'matters' if len(evidence.proven) == 1 else 'each matter'} (together "
        f"{percent(evidence.gain)})"
    )


def _only(table: RunTable, cell: str) -> RunTable:
    if cell not in table.cells:
        raise UsageError(
            f"{table.origin} has no cell {cell!r}; its cells: {', '.join(table.cells)}",
            code="dataset.cell_unknown",
        )
    only = table.where(lambda place: place.key == cell)
    # Parameters that only other cells vary do not belong to this cell.
    return only.without([name for name in only.names if len(set(only.codes(name))) < 2])


def _page(table: RunTable, result: Importance, near: dict[str, list[NeighbourSetting]]) -> str:
    drawings = [weights_figure(result)]
    for key, steps in near.items():
        for name in dict.fromkeys(step.parameter for step in steps):
            drawings.append(_landscape(key, name, [s for s in steps if s.parameter == name]))
    words = [
        f"{table.origin}: {result.rows} rows, {len(table.cells)} cells.",
        "Around the best setting: one parameter is changed, all others stay as they are.",
        *(note.words for note in result.notes),
    ]
    return drawn_page(f"Importance: {table.origin}", words, drawings)


def weights_figure(result: Importance) -> str:
    """The shares of the parameters as bars with their intervals; SVG text."""
    weights = [
        Mark(m.name, m.shuffled, m.shuffled_lo, m.shuffled_hi, f"alone {m.alone:.1%}", m.certain)
        for m in result.parameters[:20]
    ]
    return bars("Importance of the parameters", "share of the variance, 95 % interval", weights)


def _landscape(cell: str, name: str, steps: list[NeighbourSetting]) -> str:
    marks = [
        Mark(
            step.level,
            step.ratio if math.isfinite(step.ratio) else math.nan,
            math.nan,
            math.nan,
            "measured" if step.measured else "model",
            step.here,
        )
        for step in steps
    ]
    return dots(f"{cell}: {name}", "T / T_default around the best setting (blue)", marks, 1.0)
