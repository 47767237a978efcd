"""The prediction of a layout for a program, in the program's own parameters; no trace is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from pydantic import Field

from autotune.api.over_decomposition import spaces_with_layouts
from autotune.api.prediction_document import ModelOrigin
from autotune.calibration.response import CALIBRATIONS
from autotune.calibration.wire import NODE, Wire
from autotune.comparison.comparison_document import ComparisonFigures
from autotune.config.cluster import link_of
from autotune.document import Document, Omitted
from autotune.errors import UsageError
from autotune.json_types import Ends, Number, ValuesByName
from autotune.notes import Note
from autotune.prediction.layout_composition import LayoutComposition
from autotune.prediction.layout_model_file import (
    LayoutModelFile,
    find_layout_model,
    own_layout_model,
)
from autotune.prediction.layout_parts import FlatRun, layout_parts
from autotune.prediction.layout_points import layout_points
from autotune.prediction.layout_predictor import LayoutPredictor, NamedLayout
from autotune.space import DEFAULT, Setting, Space
from autotune.space.eager import eager_limit
from autotune.space.layout import LayoutMap
from autotune.targets.rows import MpiChoiceRow
from autotune.targets.target import Target
from runner.machine import describe_machine
from runner.trace import Features

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
    features: Features | None = None
    """Of the traced flat run from which the layout was composed; None for another model."""

    @property
    def predictor(self) -> LayoutPredictor:
        """The one that answered."""
        return self.model.best(self.features is not None)

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
            reach=self.predictor.confidence.reach,
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
    target: Target,
    space_name: str | None,
    model: str | None = None,
    trace: Callable[[], Features | None] = lambda: None,
) -> LayoutPrediction:
    """Predict the layout of a program in a space with words of layouts.

    ``model`` is a model file; without it the one trained here is used, else the shipped one, and on
    a machine that the model has not seen the default is named. ``trace`` gives the features of the
    program's flat run, for a model that is composed from it. Raises UsageError for a space without
    words, where none is named, and where such a model finds no trace.
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
    features = trace() if trained_model.uses_traces else None
    if features is None and needs_trace(trained_model):
        raise UsageError(
            f"{trained_model.place} is composed from a traced flat run, and the results database "
            f"has none of {target.app.name} with this input, ranks, cluster and MPI library; trace "
            "it (autotune features), or train another model (autotune train --model knn)",
            code="prediction.no_trace",
        )
    answer = _answer(trained_model, layouts, target, features)
    about = trained_model.about
    strange = []
    unseen = describe_machine().fingerprint not in about.machines
    if unseen:
        strange.append(Note("model.other_machine", "the model was trained on another machine"))
    if unseen and model is None and len(answer.setting):
        answer = replace(answer, setting=DEFAULT, gain=None, interval=None, unsure=UNSEEN)
    return LayoutPrediction(answer, layouts, target, trained_model, tuple(strange), features)


def needs_trace(model: LayoutModelFile) -> bool:
    """True if a model says nothing of programs that were not traced."""
    return isinstance(model.predictor.scorer, LayoutComposition)


def _answer(
    model: LayoutModelFile, layouts: LayoutMap, target: Target, features: Features | None
) -> NamedLayout:
    settings, family = layout_candidates(layouts), target.library.family
    run = None if features is None else FlatRun.of(features)
    wire = None if run is None else wire_here(target)
    return model.best(run is not None and wire is not None).name(
        settings,
        layout_points(layouts, settings, family),
        layout_parts(run, wire, layouts, settings, family),
    )


def wire_here(target: Target) -> Wire | None:
    """The wire of a target's cluster: as its newest calibration measured it, else that of the
    testbed; None if neither is known."""
    library, nodes = target.library, target.cluster.nodes
    limit = eager_limit(library.family, nodes, DEFAULT)
    machine = describe_machine().fingerprint
    words = {"name": library.family, "version": library.version}
    for calibration in CALIBRATIONS.of_cluster(
        target.cluster.name, fits=lambda one: dict(one.mpi) == words and one.machine == machine
    ):
        table = calibration.table(target.ranks, nodes)
        if table is not None and (wire := Wire.of_table(table, limit)) is not None:
            return wire
    link = link_of(target.cluster)
    if link is not None:
        return Wire.of_link(*link)
    return NODE if nodes == 1 else None


def layout_candidates(layouts: LayoutMap) -> list[Setting]:
    """The settings among which a layout is predicted, the default first."""
    settings = layouts.settings(frozenset(WORDS) & frozenset(layouts.words))
    choice = list(islice(settings, MOST_SETTINGS))
    return [DEFAULT, *(setting for setting in choice if setting != DEFAULT)]


def layout_start(
    space: Space,
    target: Target,
    *,
    shipped: bool,
    trace: Callable[[], Features | None] = lambda: None,
) -> Setting:
    """The layout with which a search begins: the one with the best score; the default if a model
    expects no gain, or if there is none. ``shipped``: the shipped model counts too, not only the
    user's own. A composed model also expects nothing without a ``trace``.

    One only: the next best ones are alike, and the search measures what it tries.
    """
    layouts = LayoutMap(space)
    model = find_layout_model() if shipped else own_layout_model()
    if model is None or not layouts.words:
        return DEFAULT
    features = trace() if model.uses_traces else None
    return _answer(model, layouts, target, features).best
