"""Prediction: a setting for a program, from the features of one traced run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.features import read_features
from autotune.api.over_decomposition import over_decomposition
from autotune.api.prediction_document import (
    ModelOrigin,
    NeighbourCell,
    ParameterReason,
    PredictionDocument,
    composed_document,
)
from autotune.comparison.comparison_document import ComparisonFigures
from autotune.config.cluster import read_cluster
from autotune.errors import UsageError
from autotune.notes import Note, Say, unheard
from autotune.space import Setting, Space, load_space
from autotune.space.commutativity import commutative_values, for_any_operation
from autotune.space.outside_names import check_config_name, check_values
from autotune.targets.target import Target
from autotune.targets.wrapped_launcher import is_launcher
from runner.errors import RunnerError
from runner.machine import describe_machine
from runner.mpi.discover import find_library, launcher_of
from runner.mpi.library import Library

if TYPE_CHECKING:
    from autotune.calibration.response import Calibration
    from autotune.prediction import ModelFile, NamedSetting, Neighbour
    from autotune.prediction.composed import ComposedAnswer
    from runner.trace import Features


LOCAL = "local"
UNSEEN = (
    "the model has seen no runs on this machine, and the same setting may be slower on another "
    "one: run autotune calibrate once for this cluster, or measure the setting with --check"
)
MOST_TIMES = 8
"""Largest number of calibrations of one place that count, the newest ones."""


@dataclass(frozen=True)
class PredictionPlace:
    """The MPI library, its space and the name of the cluster; ``target`` is None unless something
    will be run."""

    library: Library
    space: Space
    cluster: str
    target: Target | None = None


@dataclass(frozen=True)
class Prediction:
    """A predicted setting with its expected gain and the reasons; no run was made with it.

    ``answer`` is the answer of the model, ``near`` the most similar programs of the training set.
    ``strange`` are reasons why the prediction may not hold here, one in each entry.  ``place`` is
    None if there is no MPI.  ``composition`` is what a calibration of this cluster says, from which
    ``answer`` then comes; None without a calibration.
    """

    answer: NamedSetting
    near: list[Neighbour]
    strange: list[Note]
    features: Features
    model: ModelFile
    place: PredictionPlace | None
    composition: ComposedAnswer | None = None

    @property
    def setting(self) -> Setting:
        """The predicted setting; empty for the default."""
        return self.answer.setting

    @property
    def gain(self) -> float | None:
        """The expected gain, as a fraction; None if the default is predicted."""
        return self.answer.gain

    @property
    def to_check(self) -> Setting:
        """What a check compares with the default: the predicted setting, else the one with the best
        score if a gain is expected of it; empty if there is none."""
        from autotune.prediction.composed import LEAST

        if len(self.setting) or self.answer.best_gain < LEAST:
            return self.setting
        return self.answer.best

    def document(
        self, check: ComparisonFigures | None = None, params_file: str | None = None
    ) -> PredictionDocument:
        """What ``--json`` writes, with the check and the file that was written."""
        answer, features, model = self.answer, self.features, self.model
        target = None if self.place is None else self.place.target
        interval = None
        if answer.interval is not None:
            low, high = answer.interval
            interval = (low, high if high < 1e6 else None)
        return PredictionDocument(
            setting=answer.setting.to_json(),
            expected_gain=answer.gain,
            gain_interval95=interval,
            best_scored=answer.best.to_json(),
            best_scored_gain=answer.best_gain,
            unsure=answer.unsure or None,
            why={
                name: ParameterReason(share_of_run_time=effect.touched, time=math.exp(effect.log))
                for name, effect in answer.why.items()
            },
            chance_of_harm=answer.harm,
            composed=None if self.composition is None else composed_document(self.composition),
            distance=answer.distance,
            reach=model.predictor.reach,
            far=answer.far,
            neighbours=[
                NeighbourCell(cell=n.cell, distance=n.distance, best=n.best.to_json(), gain=n.gain)
                for n in self.near
            ],
            foreign=self.strange,
            app=features.app,
            input=features.input,
            ranks=features.ranks,
            model=ModelOrigin.of(model.about, model.place),
            check=check,
            params_file=params_file,
            over_decomposition=over_decomposition(features),
            mpi_choice=None if target is None else target.choice_row,
        )


def predict(
    features: Features | str | Path,
    *,
    model: str | Path | None = None,
    space: str | None = None,
    cluster: str | None = None,
    mpi: str | None = None,
    target: Target | None = None,
    commutative_only: bool = False,
) -> Prediction:
    """Predict the setting of a program from its features (an object, or the path of a file).

    ``model`` is a model file; without it the one trained here is used, else the shipped one.
    ``space``, ``cluster`` (by default that of the traced run) and ``mpi`` are names as on the
    command line.  ``target`` is the program for a later check.  Algorithms that
    give wrong results with operations that do not commute are named only with
    ``commutative_only``, which says that the program has none.

    Raises UsageError for a file without features, an unknown model, space, cluster or MPI.  Source:
    Pellegrini 1.9, docs/explanation/prediction.md.
    """
    from autotune.prediction import acting, find_model, learned_families, local_settings
    from autotune.prediction.scorer import model_values

    known_features = read_features(Path(features)) if isinstance(features, str | Path) else features
    trained_model = find_model(None if model is None else str(model))
    if target is not None:
        place: PredictionPlace | None = PredictionPlace(
            target.library, target.space(space), target.cluster.name, target
        )
        commutative_only = commutative_only or target.commutative_only
    else:
        mpi = mpi or traced_with(known_features)
        place = _place(known_features, space, cluster or traced_on(known_features), mpi)
    if place is not None and not commutative_only:
        place = replace(place, space=for_any_operation(place.space))
    values = model_values(known_features)
    # Parameters that act on nothing in the program are not predicted, and not checked.
    candidates = list(dict.fromkeys(acting(setting, values) for setting in trained_model.settings))
    local_names = {setting: setting for setting in candidates}
    if place is not None:
        local_names = local_settings(candidates, place.space, trained_model, place.library.family)
    if not commutative_only:
        local_names = {
            s: own for s, own in local_names.items() if not commutative_values({**s, **own})
        }
    answer = trained_model.predictor.name(values, list(local_names)).meaning(local_names)
    if place is not None and _unknown_family(place, learned_families(trained_model)):
        answer = replace(answer, gain=None, interval=None)
    if place is not None:
        answer = answer.with_names(place.space.aliases)
    check_values(answer.setting, f"the model {trained_model.place}")
    near = trained_model.predictor.neighbours(values)
    left_out: list[Note] = []
    composition = None
    if model is None and place is not None:
        composition = _composition(known_features, place, left_out.append)
    if composition is not None:
        answer = _as_named_setting(composition, answer)
        strange = _strange_trace(known_features)
    else:
        if model is None and len(answer.setting) and _unseen_machine(trained_model):
            answer = answer.withdrawn(UNSEEN)
        strange = _model_doubts(
            trained_model, known_features, place, learned_families(trained_model)
        )
    strange = [*left_out, *strange]
    return Prediction(answer, near, strange, known_features, trained_model, place, composition)


def _composition(features: Features, place: PredictionPlace, say: Say) -> ComposedAnswer | None:
    """The answer of the calibrations of this cluster, MPI and machine; None if there is none."""
    from autotune.calibration.response import hours_between, merge_calibrations
    from autotune.prediction.composed import ComposedModel
    from autotune.prediction.program_effects import find_effects

    calibrations = _calibrations(place, say)
    if not calibrations:
        return None
    model = ComposedModel(find_effects())
    return model.answer(
        features,
        merge_calibrations(calibrations),
        place.space.is_canonical,
        hours_between(calibrations),
    )


def _calibrations(place: PredictionPlace, say: Say = unheard) -> list[Calibration]:
    """Those of this cluster, MPI and machine, the newest first; the last :data:`MOST_TIMES`."""
    from autotune.calibration.response import CALIBRATIONS

    library = {"name": place.library.family, "version": place.library.version}
    machine = describe_machine().fingerprint
    calibrations = CALIBRATIONS.of_cluster(
        place.cluster,
        fits=lambda one: dict(one.mpi) == library and one.machine == machine,
        say=say,
    )
    return calibrations[:MOST_TIMES]


def warm_start(features: Features, space: Space, target: Target) -> list[Setting]:
    """The settings that are expected to be fastest for a program, best first: composed, if the
    cluster is calibrated, else those of the trained model."""
    from autotune.calibration.response import merge_calibrations
    from autotune.prediction import find_model, warm_start_settings
    from autotune.prediction.composed import ComposedModel
    from autotune.prediction.program_effects import find_effects

    place = PredictionPlace(target.library, space, target.cluster.name, target)
    calibrations = _calibrations(place)
    if calibrations:
        model = ComposedModel(find_effects())
        settings = model.fastest(features, merge_calibrations(calibrations), space.is_canonical)
        if settings is not None:
            return settings
    return warm_start_settings(features, space, find_model(), target.library.family)


def _as_named_setting(answer: ComposedAnswer, other: NamedSetting) -> NamedSetting:
    """The composed answer in the form of any other; distances stay those of ``other``."""
    choice, best = answer.named, answer.best
    unsure = "" if len(choice.setting) else _unsure(answer)
    return replace(
        other,
        setting=choice.setting,
        gain=choice.gain if len(choice.setting) else None,
        interval=answer.interval if len(choice.setting) else None,
        best=best.setting,
        best_gain=best.gain,
        harm=choice.harm if len(choice.setting) else best.harm,
        far=False,
        unsure=unsure,
        why={},
    )


def _unsure(answer: ComposedAnswer) -> str:
    """Why the setting with the best expectation is not named."""
    from autotune.prediction.composed import APART_H, ENOUGH, HARM, LEAST

    best = answer.best
    if answer.hours < APART_H:
        return (
            "the cluster was calibrated at one time only, and a machine may change its state: "
            f"calibrate it again {APART_H:.0f} hour later or more, with another --seed"
        )
    if best.harm > HARM:
        return f"its chance of being slower is {best.harm:.0%}, and at most {HARM:.0%} is allowed"
    if best.gain < LEAST:
        return f"its expected gain is below {LEAST:.0%}"
    return f"calibrations measured it less than {ENOUGH} times, or at one time only"


def _strange_trace(features: Features) -> list[Note]:
    if features.machine["fingerprint"] == describe_machine().fingerprint:
        return []
    words = "the program was traced on another machine than the one that was calibrated"
    return [Note("features.other_machine", words)]


def _place(
    features: Features, space: str | None, name: str, mpi: str | None
) -> PredictionPlace | None:
    """The MPI and its space; None if no MPI is installed."""
    try:
        library = find_library(mpi)
    except RunnerError:
        # Prediction needs no MPI; only one that the user named must be installed.
        if mpi is not None:
            raise
        return None
    cluster = read_cluster(name)  # Nothing is run, so a testbed may be down.
    facts = {
        "ranks": features.ranks,
        "cores": features.cores if cluster.testbed else cluster.total_cores,
        "nodes": features.nodes if cluster.testbed else cluster.nodes,
    }
    library_space = load_space(space or cluster.space(library), library=library, facts=facts)
    return PredictionPlace(library, library_space.without(cluster.fixed), cluster.name)


def traced_on(features: Features) -> str:
    """The cluster that the features name, if it is known here by that name."""
    name = features.cluster or LOCAL
    try:
        # A path could be the file of another user.
        return read_cluster(check_config_name("clusters", name, "the features file")).name
    except UsageError:
        return LOCAL


def traced_with(features: Features, program: Sequence[str] | None = None) -> str | None:
    """The MPI that the program was traced with, if it is installed.  None if the first MPI found is
    to be used, or if a launcher in ``program`` says which."""
    if program and is_launcher(program[0]):
        return None
    return launcher_of(features.mpi_name, features.mpi_version)


def _unknown_family(place: PredictionPlace, families: Sequence[str]) -> bool:
    """Whether the model learned from other families of MPI libraries only."""
    return bool(families) and place.library.family not in families


def _unseen_machine(model: ModelFile) -> bool:
    """Whether the model was trained on other machines only."""
    return describe_machine().fingerprint not in model.about.machines


def _model_doubts(
    model: ModelFile, features: Features, place: PredictionPlace | None, families: Sequence[str]
) -> list[Note]:
    """Reasons why the model may not hold here, one in each entry."""
    doubts = []
    fingerprint, about = describe_machine().fingerprint, model.about
    if _unseen_machine(model):
        doubts.append(Note("model.other_machine", "the model was trained on another machine"))
    elif features.machine["fingerprint"] != fingerprint:
        words = "the program was traced on another machine"
        doubts.append(Note("features.other_machine", words))
    mpi = f"{features.mpi_name} {features.mpi_version}"
    if mpi not in about.mpis:
        doubts.append(
            Note(
                "model.other_mpi",
                f"the program was traced with {mpi}, the model was trained with "
                f"{', '.join(about.mpis) or 'an unknown MPI'}",
                {"traced": mpi, "trained": list(about.mpis)},
            )
        )
    if place is not None and _unknown_family(place, families):
        doubts.append(
            Note(
                "model.other_family",
                f"the model knows {', '.join(families)} only: its setting is written in the words "
                f"of {place.library.family}, where nothing is known of its gain.  Try it first "
                "with autotune search --start",
                {"learned": list(families), "here": place.library.family},
            )
        )
    if place is None:
        words = "no MPI library was found here, so the setting was not checked against one"
        doubts.append(Note("mpi.none", words))
    return doubts
