"""Examples and training sets: the features of traced programs, and the run times of settings.

Training sets are made from recorded datasets: their runs, and the features stored with them.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from autotune.anova.best_known import opub_of
from autotune.calibration.response import CALIBRATIONS, Calibration
from autotune.datasets import Cell, Dataset, Landscape, load
from autotune.datasets.catalog import is_shipped
from autotune.datasets.dataset import CALIBRATION, FEATURES
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.prediction.measured_cell import MeasuredCell
from autotune.space import DEFAULT, Setting, Space, Value
from autotune.wording import count
from runner.files.paths import is_file
from runner.trace import Features, FeaturesError, load_features

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Example(MeasuredCell):
    """One cell: a program with its input, ranks and cluster.

    ``settings[0]`` is the default.  ``runs`` has one tuple for each setting: T / T_default of its
    runs, infinite for a run that failed.  ``opub`` is T_OPUB / T_default; it is 1 if the cell is
    ``null``, which means that nothing beats the default by more than the noise.  ``mpi`` is "family
    version", ``machine`` a fingerprint, ``calibration`` that of the machine, if there is one.
    ``split``: "design", or "report" for a cell that is only for reporting.
    """

    key: str
    app: str
    ranks: int
    cluster: str
    features: Features
    settings: tuple[Setting, ...]
    runs: tuple[tuple[float, ...], ...]
    opub: float = 1.0
    null: bool = True
    machine: str = ""
    mpi: str = ""
    calibration: Calibration | None = None
    split: str = "design"


class ExampleOrigin(Protocol):
    """What an example says of where it was measured."""

    @property
    def app(self) -> str: ...
    @property
    def machine(self) -> str: ...
    @property
    def mpi(self) -> str: ...
    @property
    def runs(self) -> tuple[tuple[float, ...], ...]: ...


Kind = TypeVar("Kind", bound=ExampleOrigin)


class ExampleSet(Generic[Kind]):
    """Programs, machines and libraries of a training set's examples."""

    examples: tuple[Kind, ...]
    sources: tuple[str, ...]

    @property
    def apps(self) -> tuple[str, ...]:
        """The programs, sorted."""
        return tuple(sorted({e.app for e in self.examples}))

    @property
    def machines(self) -> tuple[str, ...]:
        """Fingerprints of the machines that are known, sorted."""
        return tuple(sorted({e.machine for e in self.examples if e.machine}))

    @property
    def mpis(self) -> tuple[str, ...]:
        """The libraries that are known, sorted."""
        return tuple(sorted({e.mpi for e in self.examples if e.mpi}))

    def require_programs(self, programs: str, advice: str) -> None:
        """Raise UsageError for fewer than three programs: each is left out to check a model."""
        if len(self.apps) < 3:
            place = ", ".join(self.sources) or "the training data"
            raise UsageError(
                f"{place}: {programs} ({', '.join(self.apps) or 'none'}); prediction needs at "
                f"least 3, because each is left out in turn to validate the model{advice}",
                code="training.too_few_programs",
            )

    def digest(self, row: Callable[[Kind], list[Any]]) -> str:
        """SHA-256 (hex) over a row of each example and its runs, in any order of the examples.

        Runs count with six digits: the last digits of a logarithm depend on the processor.
        """
        rows = sorted(
            json.dumps([*row(e), [[f"{r:.6g}" for r in runs] for runs in e.runs]])
            for e in self.examples
        )
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()


@dataclass(frozen=True)
class TrainingSet(ExampleSet[Example]):
    """Examples from one or more recordings.

    ``defaults`` are the values of unset parameters, where known.  Raises UsageError for fewer than
    three programs: each is left out in turn to check the model.
    """

    examples: tuple[Example, ...]
    sources: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        self.require_programs(
            f"{count(len(self.apps), 'program')} with features and runs",
            ".\n" + "\n".join(note.words for note in self.notes),
        )

    @property
    def hash(self) -> str:
        """Digest of features, settings and runs."""
        return self.digest(
            lambda e: [
                *(e.key, e.app, e.ranks, e.cluster, e.features.vector()),
                [s.key for s in e.settings],
            ]
        )


def distinct(examples: Iterable[Example]) -> tuple[Setting, ...]:
    """Every setting that the examples ran, each once, the default first."""
    settings: dict[Setting, None] = {DEFAULT: None}
    for example in examples:
        settings.update(dict.fromkeys(example.settings))
    return tuple(settings)


def means(examples: Sequence[Example], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Weighted mean log ratio by setting key, over the examples that ran the setting."""
    total: dict[str, float] = {}
    weight: dict[str, float] = {}
    for example, w in zip(examples, weights or [1.0] * len(examples), strict=True):
        for setting, log in zip(example.settings, example.logs, strict=True):
            total[setting.key] = total.get(setting.key, 0.0) + w * float(log)
            weight[setting.key] = weight.get(setting.key, 0.0) + w
    return {key: total[key] / weight[key] for key in total}


_OF_THE_PROGRAM = ("arg", "file", "resource")
"""Parameters of these kinds change the program or its shape, and no other program has them."""


def training_set(places: Sequence[str | Path], split: str | None = None) -> TrainingSet:
    """The training set of the cells with features, from datasets (names or folders).

    ``split`` selects the cells of one split ("design" or "report"). Cells without a features file,
    and cells whose space belongs to their program, are left out and listed in the notes. Raises
    UsageError if fewer than three programs are left, or for an invalid file.
    """
    examples: list[Example] = []
    notes: list[Note] = []
    defaults: dict[str, Value] = {}
    for place in places:
        dataset = load(place)
        calibration = stored_calibration(dataset)
        if (off := dataset.card.guard_note) is not None:
            notes.append(Note(off.code, f"{dataset.name}: {off.words}", off.data))
        for cell in dataset.cells:
            if split is not None and cell.split != split:
                continue
            example = _example(dataset, place, cell, len(places) > 1, calibration)
            if isinstance(example, Note):
                notes.append(example)
                continue
            examples.append(example)
            space = dataset.space(cell)
            defaults |= {p.name: p.default for p in space if p.default is not None}
    return TrainingSet(tuple(examples), tuple(str(p) for p in places), defaults, tuple(notes))


def has_own_parameters(space: Space) -> bool:
    """True if parameters of a space belong to its program, so that no other program has them."""
    return bool(space.requires) or any(p.target in _OF_THE_PROGRAM for p in space)


def _example(
    dataset: Dataset,
    place: str | Path,
    cell: Cell,
    several: bool,
    calibration: Calibration | None,
) -> Example | Note:
    """The cell as an example, or why it cannot be one; ``place``: as the user gave it."""
    where = f"{dataset.name}/{cell.key}"
    space = dataset.space(cell)
    if has_own_parameters(space):
        words = f"{where} is left out: its parameters belong to the program itself"
        return Note("cell.own_parameters", words, {"cell": where})
    features = stored_features(dataset, cell)
    if features is None:
        return Note(
            "cell.no_features",
            f"{where} is left out: no {FEATURES}/{cell.key}.json in {dataset.folder}; to trace it: "
            + _trace_command(dataset, place),
            {"cell": where},
        )
    runs = dataset.runs(cell)
    same = dataset.representatives(cell)
    by_setting = {int(str(i)): tuple(g["ratio"]) for i, g in runs.groupby("setting")}
    # Settings with the same effect in this cell were run once, under the number of the first. Their
    # effects may differ in other cells, so each keeps its name.
    indices = [i for i, first in enumerate(same) if first in by_setting]
    if 0 not in indices or len(indices) < 2:
        words = f"{where} is left out: it needs runs of the default and of another setting"
        return Note("cell.few_runs", words, {"cell": where})
    settings = dataset.settings(cell)
    ratio, null = _best(dataset, cell, runs, settings)
    return Example(
        key=where if several else cell.key,
        app=cell.app,
        ranks=cell.ranks,
        cluster=cell.cluster,
        features=features,
        settings=tuple(settings[i] for i in indices),
        runs=tuple(by_setting[same[i]] for i in indices),
        opub=ratio,
        null=null,
        machine=dataset.card.machine.fingerprint,
        mpi=dataset.card.mpi,
        calibration=calibration,
        split=cell.split,
    )


def _trace_command(dataset: Dataset, place: str | Path) -> str:
    """The command that traces a dataset's programs; a shipped dataset is copied first."""
    if is_shipped(dataset.folder):
        copy = f"autotune dataset import {shlex.quote(str(dataset.folder))}"
        return f"{copy} && autotune dataset trace {shlex.quote(dataset.name)}"
    return f"autotune dataset trace {shlex.quote(str(place))}"


def stored_calibration(dataset: Dataset) -> Calibration | None:
    """The calibration of the dataset's machine and cluster; None if it has none.  Raises UsageError
    if the file is wrong."""
    path = dataset.folder / CALIBRATION
    return CALIBRATIONS.read(path) if is_file(path) else None


def stored_features(dataset: Dataset, cell: Cell) -> Features | None:
    """The features of the cell's traced launch; None if it was not traced.  Raises UsageError if
    the file is wrong."""
    path = dataset.folder / FEATURES / f"{cell.key}.json"
    if not is_file(path):
        return None
    try:
        features = load_features(path)
    except FeaturesError as problem:
        raise UsageError(str(problem), code=problem.code) from None
    if features.ranks != cell.ranks:
        raise UsageError(
            f"{path}: ranks is {features.ranks}, but the card says {cell.ranks} for cell "
            f"{cell.key}; trace the cell again",
            code="features.other_ranks",
        )
    return features


def _best(
    dataset: Dataset, cell: Cell, runs: pd.DataFrame, settings: Sequence[Setting]
) -> tuple[float, bool]:
    """T_OPUB / T_default and True if the cell is null, from the replay (grids) or from anova."""
    import pandas as pd

    if dataset.kind == "grid":
        landscape = Landscape(dataset, cell.key)
        ratio, null = landscape.best.ratio, landscape.null
    else:
        table = pd.DataFrame(
            {
                "key": [settings[int(i)].key for i in runs["setting"]],
                "ratio": runs["ratio"],
                "ok": runs["state"] == "ok",
            }
        )
        opub = opub_of(table)
        ratio, null = 1 / (1 + opub.gain), opub.null
    # A ratio that does not beat the default cannot be the scale of a share.
    if null or not ratio < 1 or not math.isfinite(ratio):
        return 1.0, True
    return ratio, False
