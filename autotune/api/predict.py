"""The setting for a program, from the features of one traced run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.api.features import read_features
from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster, read_cluster
from autotune.errors import UsageError
from autotune.space import Setting, Space, load_space
from autotune.space.trust import check_config_name, check_values
from autotune.study.launcher_line import LAUNCHERS
from autotune.study.target import Target
from autotune.study.target_request import TargetRequest
from runner.errors import RunnerError
from runner.machine import describe
from runner.mpi.discover import find, launcher_of
from runner.mpi.library import Library

if TYPE_CHECKING:
    from autotune.prediction import Model, Named, Neighbour
    from runner.trace import Features

LOCAL = "local"


@dataclass(frozen=True)
class Place:
    """The MPI and the parameters there are; ``target`` only where something is to be run."""

    library: Library
    space: Space
    target: Target | None = None


@dataclass(frozen=True)
class Prediction:
    """A setting, what is expected of it and why; nothing was run with it.

    ``named`` is what the model says, ``near`` the programs most like this one, ``strange`` why it
    may not hold here, one reason an entry; ``place`` is None where there is no MPI.
    """

    named: Named
    near: list[Neighbour]
    strange: list[str]
    features: Features
    model: Model
    place: Place | None

    @property
    def setting(self) -> Setting:
        """What is proposed; empty for the default."""
        return self.named.setting

    @property
    def gain(self) -> float | None:
        """The gain that is expected, as a fraction; None where the default is proposed."""
        return self.named.gain

    def to_json(self) -> dict[str, Any]:
        """The published form (``autotune-prediction-1``)."""
        named, features, model = self.named, self.features, self.model
        interval = None
        if named.interval is not None:
            interval = [named.interval[0], named.interval[1] if named.interval[1] < 1e6 else None]
        return {
            "schema": "autotune-prediction-1",
            "setting": named.setting.to_json(),
            "expected_gain": named.gain,
            "gain_interval95": interval,
            "best_scored": named.best.to_json(),
            "best_scored_gain": named.best_gain,
            "unsure": named.unsure or None,
            "why": {
                name: {"share_of_run_time": effect.touched, "time": math.exp(effect.log)}
                for name, effect in named.why.items()
            },
            "distance": named.distance,
            "reach": model.predictor.reach,
            "far": named.far,
            "neighbours": [
                {"cell": n.cell, "distance": n.distance, "best": n.best.to_json(), "gain": n.gain}
                for n in self.near
            ],
            "foreign": self.strange,
            "app": features.app,
            "input": features.input,
            "ranks": features.ranks,
            "model": {
                "place": model.place,
                "kind": model.about.kind,
                "data": model.about.data_hash,
                "machines": list(model.about.machines),
                "mpis": list(model.about.mpis),
            },
        }


def predict(
    features: Features | str | Path,
    *,
    model: str | Path | None = None,
    space: str | None = None,
    cluster: str | None = None,
    mpi: str | None = None,
    target: Target | None = None,
) -> Prediction:
    """Predict the setting of a program from its features (an object, or the path of a file).

    ``model`` is a model's file; by default the one trained here, else the shipped one.  ``space``,
    ``cluster`` (by default where it was traced) and ``mpi`` are names as on the command line;
    ``target`` is what would be run, for one who is going to check it.

    Raises UsageError for a file that holds no features, an unknown model, space, cluster or MPI.
    Source: Pellegrini 1.9, docs/prediction.md.
    """
    from autotune.prediction import acting, find_model, named_there, usable
    from autotune.prediction.scaling import described

    known_features = read_features(Path(features)) if isinstance(features, str | Path) else features
    known = find_model(None if model is None else str(model))
    if target is not None:
        place: Place | None = Place(target.library, target.space(space), target)
    else:
        mpi = mpi or traced_with(known_features)
        place = _place(known_features, space, cluster or traced_on(known_features), mpi)
    values = described(known_features)
    # What acts on nothing that the program does is not proposed, and not sent through a check.
    offered = list(dict.fromkeys(acting(setting, values) for setting in known.settings))
    if place is not None:
        here = place.space
        offered = [named_there(s, here, known) for s in usable(offered, here)]
    named = known.predictor.name(values, offered)
    if place is not None:
        named = named.renamed(place.space.aliases)
    check_values(named.setting, f"the model {known.place}")
    near = known.predictor.neighbours(values)
    strange = _strange_here(known, known_features, place is None)
    return Prediction(named, near, strange, known_features, known, place)


def _place(features: Features, space: str | None, name: str, mpi: str | None) -> Place | None:
    """The MPI and its space; None where there is no MPI to ask."""
    try:
        library = find(mpi)
    except RunnerError:
        # Predicting needs no MPI; only one that was asked for by name has to be there.
        if mpi is not None:
            raise
        return None
    cluster = read_cluster(name)  # Nothing is run: a testbed may be down.
    facts = {
        "ranks": features.ranks,
        "cores": features.cores if cluster.testbed else cluster.total_cores,
        "nodes": features.nodes if cluster.testbed else cluster.nodes,
    }
    found = load_space(space or cluster.space(library), library=library, facts=facts)
    return Place(library, found.without(cluster.fixed))


def traced_on(features: Features) -> str:
    """The cluster that the features name, where it is known here by that name."""
    name = features.cluster or LOCAL
    try:
        # A path would be anybody's file.
        return read_cluster(check_config_name("clusters", name, "the features file")).name
    except UsageError:
        return LOCAL


def traced_with(features: Features, program: Sequence[str] | None = None) -> str | None:
    """The MPI that the program was traced with, where it is installed; None where the first that is
    found is meant, or a launcher before ``program`` says which."""
    if program and Path(program[0]).name in LAUNCHERS:
        return None
    return launcher_of(features.mpi_name, features.mpi_version)


def recorded_target(features: Features, asked: TargetRequest) -> Target:
    """The launch that was traced, as the features have it; the rest is as asked.

    Raises UsageError where its directory is not here.
    """
    if not Path(features.cwd).is_dir():
        raise UsageError(
            f"--run-recorded: the program ran in {features.cwd}, which does not exist "
            "here; give the command instead: --check -- PROGRAM ARGS"
        )
    app = asked.as_said(app_from_command(features.argv, asked.metric, asked.verify))
    return Target.of(
        app,
        None,
        features.ranks,
        load_cluster(asked.cluster),
        find(asked.mpi),
        timeout_s=asked.timeout_s,
        clean_env=asked.clean_env,
        cwd=features.cwd,
    )


def _strange_here(model: Model, features: Features, no_mpi: bool) -> list[str]:
    """Why what the model learned may not hold here, one reason an entry."""
    found = []
    here, about = describe().fingerprint, model.about
    if here not in about.machines:
        found.append("the model was trained on another machine")
    elif features.machine["fingerprint"] != here:
        found.append("the program was traced on another machine")
    mpi = f"{features.mpi_name} {features.mpi_version}"
    if mpi not in about.mpis:
        found.append(
            f"the program was traced with {mpi}, the model was trained with "
            f"{', '.join(about.mpis) or 'an unknown MPI'}"
        )
    if no_mpi:
        found.append("no MPI library was found here, so the setting was not checked against one")
    return found
