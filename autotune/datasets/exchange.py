"""Datasets from studies of the results database, and from other people's folders."""

from __future__ import annotations

import datetime
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.datasets.block import row_of
from autotune.datasets.card import Card, Cell, Machine
from autotune.datasets.dataset import FOLDER, Dataset, load
from autotune.datasets.explore import commit_of
from autotune.datasets.plan import BLOCK_S
from autotune.datasets.shards import Row, write_shard
from autotune.datasets.writer import create
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.store import Store, StoredRun, Study
from autotune.study.ledger import Entry, entry_of
from runner.machine import describe


@dataclass(frozen=True)
class Source:
    """A study with the space that it searched."""

    study: Study
    space: Space


def export(sources: Sequence[Source], store: Store, folder: Path) -> Dataset:
    """Write the runs of these studies as an explore dataset in a new folder, one cell a study.

    Runs that were rejected or warmed up are left out.  Blocks are the parts of ten minutes in which
    the default was run.  Raises UsageError for a folder with files, studies of another machine or
    MPI, and a study without default runs.
    """
    _refuse_files(folder)
    machine = describe()
    mpis = {f"{s.study.key.mpi.family} {s.study.key.mpi.version}" for s in sources}
    if len(mpis) != 1:
        raise UsageError(f"the studies used {' and '.join(sorted(mpis))}; a dataset has one MPI")
    [mpi] = mpis
    commit = commit_of()
    cells, rows, settings = [], [], {}
    for source in sources:
        key = source.study.key
        _same_machine(source.study, machine.cpu_model, machine.cores)
        name = f"{key.app.name}-{key.app.input or 'run'}-{key.ranks}-{source.study.hash[:6]}"
        cell = name.replace(".", "-").replace("/", "-")
        blocks = _blocks(source.study, store.runs(source.study.id))
        listed = _settings(blocks)
        index = {setting.key: number for number, setting in enumerate(listed)}
        for number, entries in enumerate(blocks):
            for e in entries:
                # The limit of a stopped run is what it took at least.
                limit = e.record.wall_s if e.censored else math.nan
                row = row_of(cell, number, index[e.key], limit, e, machine.fingerprint, mpi, commit)
                rows.append(row)
        settings[cell] = listed
        cells.append(
            Cell(
                key=cell,
                app=key.app.name,
                input=key.app.input or "",
                ranks=key.ranks,
                cluster=key.cluster,
                note=f"study {source.study.hash[:12]}, strategy {key.strategy}, seed {key.seed}",
                facts=dict(source.space.facts),
                blocks=len(blocks),
            )
        )
    card = Card(
        schema=1,
        name=folder.name,
        kind="explore",
        title="Runs of studies, as they were searched",
        why="exported from a results database",
        date=f"{datetime.date.today()}",
        machine=Machine(
            fingerprint=machine.fingerprint,
            cpu_model=machine.cpu_model,
            cores=machine.cores,
            memory_bytes=machine.memory_bytes,
            kernel=machine.kernel,
            virtualised=machine.virtualised,
        ),
        mpi=mpi,
        protocol=("settings were chosen by a search: not a random sample",),
        measured_s=round(sum(row.wall_s for row in rows), 1),
        regenerate="autotune dataset export " + " ".join(s.study.hash[:12] for s in sources),
        cells=tuple(cells),
    )
    spaces = {cell.key: source.space for cell, source in zip(cells, sources, strict=True)}
    made = create(folder, card, spaces, settings)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.cell, row.block), []).append(row)
    for group in groups.values():
        write_shard(folder, group)
    return made


def _refuse_files(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists already; give a new folder")


def _same_machine(study: Study, cpu_model: str, cores: int) -> None:
    known = study.key.machine
    if (known.cpu_model, known.cores) != (cpu_model, cores):
        raise UsageError(
            f"study {study.hash[:12]} was measured on {known.cpu_model} with {known.cores} cores, "
            "not on this machine, so its fingerprint is not known here: export it there, then "
            "import the folder"
        )


def _blocks(study: Study, runs: Sequence[StoredRun]) -> list[list[Entry]]:
    """Runs that count, cut every ten minutes where both parts have runs of the default."""
    entries = [e for e in map(entry_of, runs) if e.counts]
    blocks: list[list[Entry]] = []
    for entry in entries:
        began = blocks[-1][0].record.started_at if blocks else -math.inf
        late = entry.record.started_at - began > BLOCK_S
        if not blocks or (late and _is_default(entry) and any(map(_is_default, blocks[-1]))):
            blocks.append([])
        blocks[-1].append(entry)
    if not any(map(_is_default, entries)):
        raise UsageError(
            f"study {study.hash[:12]} has no valid run of the default: its runs cannot be compared"
        )
    return blocks


def _is_default(entry: Entry) -> bool:
    return entry.key == DEFAULT.key and entry.record.valid


def _settings(blocks: Sequence[Sequence[Entry]]) -> list[Setting]:
    keys = dict.fromkeys([DEFAULT.key, *(e.key for block in blocks for e in block)])
    return [Setting.parse(key) for key in keys]


def import_folder(source: Path, name: str | None = None, into: Path = FOLDER) -> Dataset:
    """Check a dataset's folder whole and copy it to ``into/NAME``.

    Raises UsageError where something is damaged, does not fit together, or the name is taken.
    """
    found = load(source)
    check(found)
    place = into / (name or found.name)
    if place.exists():
        raise UsageError(f"there is a dataset {place} already; give another --name")
    partial = into / f".{place.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        into.mkdir(parents=True, exist_ok=True)
        shutil.copytree(found.folder, partial)
        partial.rename(place)
    except OSError as problem:
        shutil.rmtree(partial, ignore_errors=True)
        raise UsageError(f"cannot write {place}: {problem.strerror}") from None
    return load(place)


def check(dataset: Dataset) -> None:
    """Read everything once; raises UsageError for the first thing that is wrong."""
    runs = dataset.runs()
    for cell in dataset.cells:
        space = dataset.space(cell)
        for number, setting in enumerate(dataset.settings(cell)):
            wrong = space.violations(setting, grid=False) if setting != DEFAULT else []
            if wrong:
                raise UsageError(
                    f"{dataset.folder}: cell {cell.key}, setting {number}: {'; '.join(wrong)}"
                )
        mine = runs[runs["cell"] == cell.key]
        without = mine.loc[mine["ratio"].isna(), "block"]
        if len(without):
            raise UsageError(
                f"{dataset.folder}: cell {cell.key}, block {int(without.iloc[0])} has no valid run "
                "of the default: its runs cannot be compared"
            )
