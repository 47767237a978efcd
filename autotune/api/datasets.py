"""Studies of the results database as sources of datasets.

The first part makes cells of studies; the second part makes training data of studies of traced
programs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.features import read_features
from autotune.api.target import to_stderr
from autotune.config.app import load_app
from autotune.config.cluster import load_cluster
from autotune.datasets.exchange import Source, export_cells
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import load_space
from autotune.space.outside_names import check_config_name
from autotune.store import Store, StudyRecord
from autotune.store.keys import COMPARE, NOISE, SCREENING
from runner.mpi.discover import find_library, launcher_of

if TYPE_CHECKING:
    from autotune.store import StudyRecord
    from runner.trace import Features


def source_of(study: StudyRecord, mpi: str | None) -> Source:
    """The study with its space for its own MPI; raises UsageError if the space has changed."""
    key = study.key
    mpi = mpi or launcher_of(key.mpi.family, key.mpi.version)
    origin = f"study {study.hash[:12]}"
    if key.others:
        raise UsageError(
            f"{origin} searched under several MPI libraries ({key.mpi_title}), and a dataset is of "
            f"one; autotune export {study.hash[:12]} writes its runs to a file",
            code="dataset.several_libraries",
        )
    cluster = load_cluster(check_config_name("clusters", key.cluster, origin))
    facts = {"ranks": key.ranks, "cores": cluster.total_cores, "nodes": cluster.nodes}
    try:
        name = check_config_name("apps", key.app.name, origin)
        app_facts = dict(load_app(name).input(key.app.input).facts)
    except UsageError:
        app_facts = {}  # A program given on the command line has no named input.
    name = check_config_name("spaces", key.space_name, origin)
    space = load_space(name, library=find_library(mpi), facts=facts, app_facts=app_facts)
    if space.hash != key.space_hash:
        raise UsageError(
            f"study {study.hash[:12]} searched another version of space {key.space_name} "
            "than the present one: the file, the MPI library or the cluster has changed "
            "(--mpi chooses the MPI)",
            code="space.changed",
        )
    return Source(study, space)


_NO_SEARCH = ("run", NOISE, COMPARE, SCREENING)
"""Strategies of studies of single settings, which contain nothing to learn."""
Launch = tuple[str | tuple[str, ...], str | None, int, str]
"""A name or a command line, the input, the number of ranks, and the MPI."""


def dataset_of_features(store: str | None, files: Sequence[Path], folder: Path) -> Path:
    """Write the studies of traced programs as a dataset with features in ``folder``; returns the
    folder.

    ``files`` are features files.  A note says which studies are left out, with the reason.  Raises
    UsageError if no study is left.
    """

    if not files:
        raise UsageError(
            "nothing to train on; expected one of\n  autotune train --from DATASET\n"
            "  autotune train --store URL --features FILE --features FILE ...",
            code="training.missing",
        )
    features_by_launch = {_launch_of(features): features for features in map(read_features, files)}
    with Store.open_to_read(store) as database:
        records = database.study_records([line.id for line in database.studies()])
        # A name is that of a known application only if the features have it; a program of the
        # command line is recognised by its words.
        of_study = {
            s.hash: next((k for k in _launches_of(s) if k in features_by_launch), None)
            for s in records
        }
        studies = [s for s in records if of_study[s.hash] and s.key.strategy not in _NO_SEARCH]
        sources, problems = [], []
        for study in studies:
            try:
                sources.append(source_of(study, None))
            except UsageError as problem:
                problems.append(str(problem))
        if not sources:
            names = ", ".join(
                f"{_what(features)} on {features.ranks} ranks with {features.mpi_name}"
                for features in features_by_launch.values()
            )
            raise UsageError(
                "the results database has no search of a program with these features "
                f"({names}); autotune studies lists the searches"
                + "".join(f"\n{text}" for text in problems),
                code="training.no_search",
            )
        for text in problems:
            to_stderr(Note("study.left_out", f"left out: {text}"))
        dataset = export_cells(sources, database, folder)
        for note in database.damage.notes:
            to_stderr(note)
    for cell, source in zip(dataset.cells, sources, strict=True):
        launch = of_study[source.study.hash]
        assert launch is not None
        place = folder / "features" / f"{cell.key}.json"
        place.parent.mkdir(exist_ok=True)
        features_by_launch[launch].save(place)
    return folder


def _launch_of(features: Features) -> Launch:
    """The traced launch: an application's name and input, or a command line; its ranks and MPI."""
    mpi = f"{features.mpi_name} {features.mpi_version}"
    if features.app is None:
        return (tuple(features.argv), None, features.ranks, mpi)
    return (features.app, features.input, features.ranks, mpi)


def _launches_of(study: StudyRecord) -> tuple[Launch, Launch]:
    app, ranks, mpi = study.key.app, study.key.ranks, study.key.mpi
    library = f"{mpi.family} {mpi.version}"
    line = (app.program, *app.argv)
    return (app.name, app.input, ranks, library), (line, None, ranks, library)


def _what(features: Features) -> str:
    return features.app or shlex.join(features.argv)
