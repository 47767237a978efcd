"""The analysis of variance of recorded runs: which parameters matter, and their best levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

from pydantic import Field

from autotune.anova.diagnostics import diagnose
from autotune.anova.factors import (
    CORRECTIONS,
    MODELS,
    Correction,
    Factor,
    FactorOptions,
    FactorRow,
    Model,
    chosen_setting,
    judge_factors,
)
from autotune.anova.interactions import Interaction, interactions
from autotune.anova.layout_table import LEAST, read_words_or_table
from autotune.anova.mixed import Fit, fit
from autotune.anova.oneway import RESPONSES, Response, Values, respond
from autotune.anova.stability import WAYS, By, Subset, SubsetRow, stability
from autotune.document import Document
from autotune.errors import UsageError
from autotune.json_types import Number, ValuesByName
from autotune.notes import Note
from autotune.report.figures import level_means
from autotune.report.page import drawn_page
from autotune.space import Setting

PRESETS = ("thesis", "careful")


class AnalysisDocument(Document):
    """An analysis of variance."""

    schema_: Literal["autotune-anova-1"] = Field(default="autotune-anova-1", alias="schema")
    source: str
    response: str
    model: str
    level: Number
    """Confidence level."""
    correction: str
    rows: int
    cells: list[str]
    cells_left_out: list[str]
    factors: list[FactorRow]
    setting: ValuesByName
    """Chosen levels."""
    interactions: list[Interaction]
    stability: list[SubsetRow]
    joint: Fit | None
    """Joint fit (--joint)."""
    notes: list[Note]


@dataclass(frozen=True)
class Analysis:
    """The result of an analysis.

    ``interactions`` are of two parameters, ``joint_model`` is one model of all parameters that
    matter (None unless asked for), and ``parts`` repeats the analysis on parts of the data.
    """

    values: Values
    options: FactorOptions
    response: Response
    factors: list[Factor]
    interactions: list[Interaction]
    joint_model: Fit | None
    parts: list[Subset]
    notes: list[Note]

    @property
    def setting(self) -> Setting:
        """The best level of every parameter that matters, as one setting."""
        return chosen_setting(self.factors)

    @property
    def headline(self) -> list[str]:
        """Lines that say what was analysed, and the setting."""
        table, options = self.values.table, self.options
        return [
            (
                f"{table.origin}: {len(self.values.y)} rows (setting x cell), {len(table.cells)} "
                f"cells, {len(table.names)} parameters; {options.model} at "
                f"{options.level * 100:g} %, correction {options.correction}"
            ),
            f"setting: {self.setting.key.replace(',', ' ')}",
        ]

    def page(self) -> str:
        """The means of levels as one HTML page."""
        drawings = level_means(self.factors, self.response)
        title = f"Level means: {self.values.table.origin}"
        return drawn_page(title, [*self.headline, *(note.words for note in self.notes)], drawings)

    @property
    def document(self) -> AnalysisDocument:
        """What ``--json`` writes."""
        values, options = self.values, self.options
        return AnalysisDocument(
            source=values.table.origin,
            response=self.response,
            model=options.model,
            level=options.level,
            correction=options.correction,
            rows=len(values.y),
            cells=list(values.table.cells),
            cells_left_out=list(values.left_out),
            factors=[factor.row for factor in self.factors],
            setting=self.setting.to_json(),
            interactions=self.interactions,
            stability=[part.row for part in self.parts],
            joint=self.joint_model,
            notes=self.notes,
        )


def analyse(
    source: str,
    options: FactorOptions,
    *,
    response: str = "gain",
    by: str | None = None,
    pairs: bool = True,
    joint: bool = False,
    store: str | None = None,
) -> Analysis:
    """Analyse a dataset, or ``study:ID`` of the results database ``store``.

    ``response`` and ``by`` are words of the command line.  Raises UsageError for a wrong word or an
    unknown source, WorkError if no cell has a possible gain to analyse.
    """
    kind = cast(Response, one_of("--response", response, RESPONSES))
    way = None if by is None else cast(By, one_of("--by", by, WAYS))
    run_table = read_words_or_table(source, store)
    if run_table.joined is not None:
        options = replace(options, min_level=LEAST)
    values = respond(run_table, kind)
    factors = judge_factors(values, options)
    strong = [f.name for f in factors if f.significant]
    return Analysis(
        values=values,
        options=options,
        response=kind,
        factors=factors,
        interactions=interactions(values, run_table.names, level=options.level) if pairs else [],
        joint_model=fit(values, strong) if joint and strong else None,
        parts=[] if way is None else stability(run_table, way, kind, options),
        notes=[
            *diagnose(values, options.model, options.min_level),
            *filter(None, [run_table.joined, run_table.unguarded, *run_table.damaged]),
        ],
    )


def one_of(option: str, word: str, choices: tuple[str, ...]) -> str:
    """The word if it is known; raises UsageError otherwise."""
    if word not in choices:
        raise UsageError(
            f"{option} {word!r} is not known; expected {', '.join(choices)}",
            code="usage.unknown_word",
        )
    return word


def read_options(
    preset: str, model: str | None, level: float, correction: str | None
) -> FactorOptions:
    """The options for the words of the command line; raises UsageError for a wrong one."""
    one_of("--preset", preset, PRESETS)
    if not 50 <= level < 100:
        raise UsageError(
            f"--level {level} is out of range; expected 50 to below 100, such as 99.9",
            code="usage.range",
        )
    thesis = preset == "thesis"
    model_name = one_of("--model", model or ("oneway" if thesis else "mixed"), MODELS)
    correction_name = one_of(
        "--correction", correction or ("none" if thesis else "holm"), CORRECTIONS
    )
    return FactorOptions(
        model=cast(Model, model_name),
        level=level / 100,
        correction=cast(Correction, correction_name),
        against_default=not thesis,
    )
