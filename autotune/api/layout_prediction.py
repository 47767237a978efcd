"""The prediction of a layout for a program, in the program's own parameters; no trace is needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from pydantic import Field

from autotune.api.over_decomposition import spaces_with_layouts
from autotune.api.predict import ModelOrigin
from autotune.comparison.comparison_document import ComparisonFigures
from autotune.document import Document, Omitted
from autotune.errors import UsageError
from autotune.json_types import Ends, Number, ValuesByName
from autotune.notes import Note
from autotune.prediction.layout_model_file import (
    LayoutModelFile,
    find_layout_model,
    own_layout_model,
)
from autotune.prediction.layout_points import layout_points
from autotune.prediction.layout_predictor import NamedLayout
from autotune.space import DEFAULT, Setting, Space
from autotune.space.layout import LayoutMap
from autotune.targets.rows import MpiChoiceRow
from autotune.targets.target import Target
from runner.machine import describe_machine

WORDS = ("model", "workers", "factor", "cut_x", "cut_y", "cut_z", "chunk", "barrier")
"""Words among whose settings a layout is predicted: the others are no part of what models know."""
MOST_SETTINGS = 20_000
"""Most settings that are scored; spaces with more are cut off there."""
UNSEEN = (
    "the model has seen no runs on this machine: train it here (autotune train), or measure the "
    "layout with --check"
)


class LayoutPredictionDocument(Document):
    """A predicted layout, in the program's own parameters and in words."""

    schema_: Literal["autotune-layout-prediction-1"] = Field(
        default="autotune-layout-prediction-1", alias="schema"
    )
    setting: ValuesByName
    """Values by parameter; {} is the default."""
    words: ValuesByName
    """The layout of the setting in words of the vocabulary."""
    expected_gain: Number | None
    gain_interval95: Ends | None
    best_scored: ValuesByName
    best_scored_words: ValuesByName
    best_scored_gain: Number | None
    unsure: str | None
    chance_of_harm: Number | None
    distance: Number
    reach: Number
    far: bool
    app: str
    input: str | None
    ranks: int
    space: str
    model: ModelOrigin
    check: ComparisonFigures | None
    """Comparison with the default (--check), as of compare without a, b and schema."""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""


@dataclass(frozen=True)
class LayoutPrediction:
    """The layout that a model names for a program.

    ``answer`` holds settings of ``space``; ``strange``: reasons why it may not hold here.
    """

    answer: NamedLayout
    layouts: LayoutMap
    target: Target
    model: LayoutModelFile
    strange: tuple[Note, ...]

    @property
    def space(self) -> Space:
        """The space of the program."""
        return self.layouts.space

    @property
    def to_check(self) -> Setting:
        """What a check compares with the default: the named layout, else the one with the best
        score."""
        return self.answer.setting if len(self.answer.setting) else self.answer.best

    def document(self, check: ComparisonFigures | None = None) -> LayoutPredictionDocument:
        """What ``--json`` writes, with the check."""
        answer, model, target = self.answer, self.model, self.target
        interval = None
        if answer.interval is not None:
            low, high = answer.interval
            interval = (low, high if high < 1e6 else None)
        return LayoutPredictionDocument(
            setting=answer.setting.to_json(),
            words=dict(self.layouts.layout(answer.setting).words),
            expected_gain=answer.gain,
            gain_interval95=interval,
            best_scored=answer.best.to_json(),
            best_scored_words=dict(self.layouts.layout(answer.best).words),
            best_scored_gain=answer.best_gain,
            unsure=answer.unsure or None,
            chance_of_harm=answer.harm,
            distance=answer.distance,
            reach=model.predictor.confidence.reach,
            far=answer.far,
            app=target.app.name,
            input=target.input,
            ranks=target.ranks,
            space=self.space.name,
            model=ModelOrigin.of(model.about, model.place),
            check=check,
            mpi_choice=target.choice_row,
        )


def predict_layout(
    target: Target, space_name: str | None, model: str | None = None
) -> LayoutPrediction:
    """Predict the layout of a program in a space with words of layouts.

    ``model`` is a model file; without it the one trained here is used, else the shipped one, and on
    a machine that the model has not seen the default is named. Raises UsageError for a space
    without words, and where none is named.
    """
    if space_name is None:
        raise UsageError(
            f"the layout of {target.app.name} is predicted in a space: give --space, one of "
            f"{', '.join(spaces_with_layouts(target.app)) or 'none: it has no spaces of layouts'}",
            code="prediction.no_space",
        )
    layouts = LayoutMap(target.space(space_name))
    if not layouts.words:
        raise UsageError(
            f"space {layouts.space.name} has no words of layouts; expected one that has "
            f"({', '.join(spaces_with_layouts(target.app)) or 'this program has none'}), or a "
            "features file (autotune features)",
            code="prediction.no_layouts",
        )
    trained_model = find_layout_model(model)
    settings = layout_candidates(layouts)
    points = layout_points(layouts, settings, target.library.family)
    answer = trained_model.predictor.name(settings, points)
    about = trained_model.about
    strange = []
    unseen = describe_machine().fingerprint not in about.machines
    if unseen:
        strange.append(Note("model.other_machine", "the model was trained on another machine"))
    if unseen and model is None and len(answer.setting):
        answer = replace(answer, setting=DEFAULT, gain=None, interval=None, unsure=UNSEEN)
    return LayoutPrediction(answer, layouts, target, trained_model, tuple(strange))


def layout_candidates(layouts: LayoutMap) -> list[Setting]:
    """The settings among which a layout is predicted, the default first."""
    settings = layouts.settings(frozenset(WORDS) & frozenset(layouts.words))
    choice = list(islice(settings, MOST_SETTINGS))
    return [DEFAULT, *(setting for setting in choice if setting != DEFAULT)]


def layout_start(space: Space, target: Target, *, shipped: bool) -> Setting:
    """The layout with which a search begins: the one with the best score; the default if a model
    expects no gain, or if there is none. ``shipped``: the shipped model counts too, not only the
    user's own.

    One only: the next best ones are alike, and the search measures what it tries.
    """
    layouts = LayoutMap(space)
    model = find_layout_model() if shipped else own_layout_model()
    if model is None or not layouts.words:
        return DEFAULT
    settings = layout_candidates(layouts)
    points = layout_points(layouts, settings, target.library.family)
    return model.predictor.name(settings, points).best
