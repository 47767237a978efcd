"""Exchange of datasets: copying folders within bounds, export of studies, and import of folders.

:func:`copy_folder` copies a foreign folder: only plain files in plain folders, up to a limit.
:func:`export_cells` exports studies of the results database as a dataset. :func:`import_folder`
imports and checks foreign folders.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from autotune.artifacts import content_id
from autotune.datasets.campaign import commit_of, row_of
from autotune.datasets.card import CARD, Card, Cell, RecordedMachine
from autotune.datasets.catalog import FOLDER, folder_of, own_folder
from autotune.datasets.dataset import (
    CALIBRATION,
    FEATURES,
    SETTINGS,
    SPACE,
    SPACES,
    Dataset,
    create_dataset,
    load,
)
from autotune.datasets.plan import BLOCK_S
from autotune.datasets.shards import SHARDS, RunRow, stated_rows, write_shard
from autotune.errors import UsageError
from autotune.measurement.run_history import HistoryEntry, entry_of
from autotune.names import NAME_RULE, is_plain, plain_name, slug
from autotune.space import DEFAULT, Setting, Space
from autotune.store import Store, StoredRun, StudyRecord
from runner.files import MIB, open_regular, read_text
from runner.files.json_text import parse_json
from runner.files.paths import entries, exists, is_file, is_folder, real_path
from runner.files.private_files import make_folder
from runner.machine import describe_machine
from runner.trace import FeaturesError, load_features

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = MIB
_PREFIX, _SUFFIX = ".import-", ".partial"


@dataclass(frozen=True)
class Bounds:
    """Upper limits of a copy: files and folders, bytes of one file, bytes of all files."""

    entries: int = 10_000
    file_bytes: int = 64 * MIB
    bytes: int = 1024 * MIB


BOUNDS = Bounds()


@contextlib.contextmanager
def partial_folder(into: Path) -> Iterator[Path]:
    """A new hidden folder in ``into``, to copy to and then rename; otherwise it is removed at the
    end.

    Folders left by killed processes are removed. Raises OSError.
    """
    if into == own_folder():
        make_folder(into)
    else:
        into.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(into)
    part, lock = _locked_folder(into)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(lock)


def _locked_folder(into: Path) -> tuple[Path, int]:
    """A new folder, and its descriptor with a lock, which ends with this process."""
    while True:
        part = Path(tempfile.mkdtemp(prefix=_PREFIX, suffix=_SUFFIX, dir=into))
        lock = os.open(part, _FOLDER)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = exists(part)
        except BlockingIOError:
            ours = False
        except OSError:
            ours = True  # A file system without locks: nothing is cleaned up there.
        if ours:
            return part, lock
        os.close(lock)  # Another process took it for a leftover before it was locked.


def _remove_leftovers(into: Path) -> None:
    """Remove the folders of ended processes, which are no longer locked."""
    for left in into.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            lock = os.open(left, _FOLDER)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)


def copy_folder(source: Path, target: Path, bounds: Bounds = BOUNDS) -> None:
    """Copy a folder of files, and of folders of files, into the empty folder ``target``.

    Every entry is opened relative to its open folder, so that a path that changes meanwhile has no
    effect. Raises UsageError for a link, a fifo, a socket, a device, a name that is not plain, a
    deeper folder, or more than ``bounds``; OSError if reading or writing fails.
    """
    fd = os.open(source, _FOLDER & ~os.O_NOFOLLOW)  # The user named this folder.
    try:
        _Copy(bounds).folder(fd, source, target, deep=False)
    finally:
        os.close(fd)


class _Copy:
    """The amounts copied so far, compared with the bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._entries = 0
        self._bytes = 0

    def folder(self, fd: int, source: Path, target: Path, deep: bool) -> None:
        for name in self._names(fd, source):
            place = source / name
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                self._file(fd, name, place, target / name)
                continue
            if deep:
                raise UsageError(
                    f"{place}: a dataset has no folders inside its folders; remove it",
                    code="dataset.foreign_file",
                )
            inner = os.open(name, _FOLDER, dir_fd=fd)
            try:
                (target / name).mkdir()
                self.folder(inner, place, target / name, deep=True)
            finally:
                os.close(inner)

    def _names(self, fd: int, source: Path) -> list[str]:
        names = []
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > self._bounds.entries:
                    raise UsageError(
                        f"{source}: more than {self._bounds.entries} files; a dataset from "
                        "elsewhere may not have more",
                        code="dataset.too_large",
                    )
                if not is_plain(entry.name):
                    raise UsageError(
                        f"{source}: {entry.name[:80]!r} is not the name of a dataset's file; "
                        f"expected {NAME_RULE}.  Remove it, or ask who made the dataset",
                        code="dataset.foreign_file",
                    )
                names.append(entry.name)
        return sorted(names)

    def _file(self, fd: int, name: str, place: Path, target: Path) -> None:
        try:
            source = open_regular(name, self._bounds.file_bytes, follow=False, dir_fd=fd)
        except OSError as problem:
            raise UsageError(
                f"{place}: {problem.strerror}; a dataset from elsewhere may contain only "
                "regular files of limited size",
                code="dataset.foreign_file",
            ) from None
        with source, target.open("xb") as copy:
            left = self._bounds.file_bytes
            while chunk := source.read(_CHUNK):
                left -= len(chunk)
                self._bytes += len(chunk)
                if left < 0 or self._bytes > self._bounds.bytes:
                    raise UsageError(
                        f"{place}: with this file the dataset has more than "
                        f"{self._bounds.bytes // MIB} MiB, or the file grows while it is copied",
                        code="dataset.too_large",
                    )
                copy.write(chunk)


MOST_RUNS = 1_000_000
CALIBRATION_BYTES = 64 * MIB
_FILES = {CARD, SPACE, CALIBRATION, "README.md", "LICENSE"}
_FOLDERS = {SPACES: ".toml", SETTINGS: ".json", SHARDS: ".parquet", FEATURES: ".json"}


@dataclass(frozen=True)
class Source:
    """A study with the space that it searched."""

    study: StudyRecord
    space: Space


def export_cells(sources: Sequence[Source], store: Store, folder: Path) -> Dataset:
    """Write the runs of these studies as an explore dataset in a new folder, one cell for each
    study.

    Rejected runs and warm-up runs are left out.  Blocks are ten-minute parts with runs of the
    default.  Raises UsageError for a folder with files, for studies of another machine or of
    several MPIs, and for a study without default runs.
    """
    _refuse_files(folder)
    dataset_name = plain_name(
        real_path(folder).name, "-o: the dataset takes its name from the folder"
    )
    machine = describe_machine()
    mpis = {f"{s.study.key.mpi.family} {s.study.key.mpi.version}" for s in sources}
    if len(mpis) != 1:
        raise UsageError(
            f"the studies used {' and '.join(sorted(mpis))}; a dataset has one MPI",
            code="dataset.several_libraries",
        )
    [mpi] = mpis
    commit = commit_of()
    cells, rows, settings = [], [], {}
    for source in sources:
        key = source.study.key
        _same_machine(source.study, machine.cpu_model, machine.cores)
        words = f"{key.app.name[:30]}-{(key.app.input or 'run')[:20]}"
        cell = slug(f"{words}-{key.ranks}-{source.study.hash[:6]}")
        blocks = _blocks(source.study, store.runs(source.study.id))
        indexed_settings = _settings(blocks)
        index = {setting.key: number for number, setting in enumerate(indexed_settings)}
        for number, block in enumerate(blocks):
            for e in block:
                # A stopped run took at least its time limit.
                limit = e.record.wall_s if e.censored else math.nan
                row = row_of(cell, number, index[e.key], limit, e, machine.fingerprint, mpi, commit)
                rows.append(row)
        settings[cell] = indexed_settings
        cells.append(
            Cell(
                key=cell,
                app=slug(key.app.name),
                input=key.app.input or "",
                ranks=key.ranks,
                cluster=slug(key.cluster),
                note=f"study {source.study.hash[:12]}, strategy {key.strategy}, seed {key.seed}",
                facts=dict(source.space.facts),
                blocks=len(blocks),
                unguarded=() if key.has_guard else tuple(range(len(blocks))),
            )
        )
    card = Card(
        schema=1,
        name=dataset_name,
        kind="explore",
        title="Runs of studies, as they were searched",
        why="exported from a results database",
        date=f"{datetime.date.today()}",
        machine=RecordedMachine.of(machine),
        mpi=mpi,
        protocol=("settings were chosen by a search: not a random sample",),
        measured_s=round(sum(row.wall_s for row in rows), 1),
        regenerate="autotune dataset export " + " ".join(s.study.hash[:12] for s in sources),
        cells=tuple(cells),
    )
    spaces = {cell.key: source.space for cell, source in zip(cells, sources, strict=True)}
    dataset = create_dataset(folder, card, spaces, settings)
    groups: dict[tuple[str, int], list[RunRow]] = {}
    for row in rows:
        groups.setdefault((row.cell, row.block), []).append(row)
    for group in groups.values():
        write_shard(folder, group)
    return dataset


def _refuse_files(folder: Path) -> None:
    if exists(folder) and (not is_folder(folder) or entries(folder)):
        raise UsageError(f"{folder} exists already; give a new folder", code="dataset.exists")


def _same_machine(study: StudyRecord, cpu_model: str, cores: int) -> None:
    recorded = study.key.machine
    if (recorded.cpu_model, recorded.cores) != (cpu_model, cores):
        raise UsageError(
            f"study {study.hash[:12]} was measured on {recorded.cpu_model} with {recorded.cores} "
            "cores, not on this machine, so the fingerprint of its machine is not known "
            "here: export it there, then import the folder here",
            code="dataset.other_machine",
        )


def _blocks(study: StudyRecord, runs: Sequence[StoredRun]) -> list[list[HistoryEntry]]:
    """Runs that count, divided every ten minutes so that both parts have runs of the default."""
    entries = [e for e in map(entry_of, runs) if e.counts]
    blocks: list[list[HistoryEntry]] = []
    for entry in entries:
        began = blocks[-1][0].record.started_at if blocks else -math.inf
        late = entry.record.started_at - began > BLOCK_S
        if not blocks or (late and _is_default(entry) and any(map(_is_default, blocks[-1]))):
            blocks.append([])
        blocks[-1].append(entry)
    if not any(map(_is_default, entries)):
        raise UsageError(
            f"study {study.hash[:12]} has no valid run of the default, so its runs cannot "
            "be compared",
            code="dataset.no_default",
        )
    return blocks


def _is_default(entry: HistoryEntry) -> bool:
    return entry.key == DEFAULT.key and entry.record.valid


def _settings(blocks: Sequence[Sequence[HistoryEntry]]) -> list[Setting]:
    keys = dict.fromkeys([DEFAULT.key, *(e.key for block in blocks for e in block)])
    return [Setting.parse(key) for key in keys]


def import_folder(
    source: Path, name: str | None = None, into: Path = FOLDER, bounds: Bounds = BOUNDS
) -> Dataset:
    """Copy a dataset's folder, check the whole copy, and rename it to ``into/NAME`` in one step.

    ``name`` defaults to the card's. Raises UsageError if something is damaged, inconsistent, not a
    regular file or larger than ``bounds``, or if the name is taken or not plain. Then nothing has
    changed.
    """
    if name is not None:
        plain_name(name, "--name")
    folder = folder_of(source)
    try:
        with partial_folder(into) as part:
            copy_folder(folder, part, bounds)
            # The copy is checked, because no other process can change it.
            place = into / _check_copy(part, folder, name)
            if os.path.lexists(place):
                raise UsageError(
                    f"dataset {place} exists already; give another --name", code="dataset.exists"
                )
            if into != own_folder():
                part.chmod(0o777 & ~_umask())
            part.rename(place)
    except OSError as problem:
        raise UsageError(
            f"cannot copy {folder} into {into}: {problem.strerror}: {problem.filename}",
            code="dataset.unwritable",
        ) from None
    return load(place)


def _refuse_strangers(folder: Path) -> None:
    """Refuse files that no part of autotune reads: they would be copied without a check."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        patterns = _FILES if len(inside.parts) == 1 else {f"*{_FOLDERS.get(inside.parts[0], '/')}"}
        if is_folder(path) and path.name in _FOLDERS and path.parent == folder:
            continue
        if is_folder(path) or not any(fnmatch(path.name, pattern) for pattern in patterns):
            raise UsageError(
                f"{path} does not belong to a dataset, which has {', '.join(sorted(_FILES))} and "
                + ", ".join(f"{name}/*{suffix}" for name, suffix in _FOLDERS.items()),
                code="dataset.foreign_file",
            )


def _check_copy(part: Path, folder: Path, name: str | None) -> str:
    """The name of the dataset in ``part``; errors name the paths of ``folder``."""
    try:
        copy = load(part)
        check_dataset(copy)
    except UsageError as problem:
        raise UsageError(f"{problem}".replace(f"{part}", f"{folder}"), code=problem.code) from None
    return name or copy.name


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _check_calibration(path: Path) -> None:
    """The id in the file, if there is one, reveals changes."""
    if not is_file(path):
        return
    try:
        data = parse_json(read_text(path, CALIBRATION_BYTES))
        file_id = data.pop("id")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise UsageError(
            f"{path}: not a calibration ({problem!r})", code="dataset.calibration"
        ) from None
    if file_id != content_id(data):
        raise UsageError(
            f"{path}: its content does not match its id {file_id!r}", code="dataset.edited"
        )


def check_dataset(dataset: Dataset) -> None:
    """Read all files once; raises UsageError for the first error."""
    _refuse_strangers(dataset.folder)
    # The rows are counted before they are read: many equal rows make a small file.
    row_count = sum(map(stated_rows, sorted((dataset.folder / SHARDS).glob("*.parquet"))))
    if row_count > MOST_RUNS:
        raise UsageError(
            f"{dataset.folder} has {row_count} runs; a dataset may have {MOST_RUNS} at most",
            code="dataset.too_large",
        )
    for path in sorted((dataset.folder / FEATURES).glob("*.json")):
        try:
            load_features(path)
        except FeaturesError as problem:
            raise UsageError(f"{problem}", code=problem.code) from None
    _check_calibration(dataset.folder / CALIBRATION)
    runs = dataset.runs()
    for cell in dataset.cells:
        space = dataset.space(cell)
        for number, setting in enumerate(dataset.settings(cell)):
            wrong = space.violations(setting, grid=False) if setting != DEFAULT else []
            if wrong:
                raise UsageError(
                    f"{dataset.folder}: cell {cell.key}, setting {number}: {'; '.join(wrong)}",
                    code="dataset.settings",
                )
        mine = runs[runs["cell"] == cell.key]
        without = mine.loc[mine["ratio"].isna(), "block"]
        if len(without):
            raise UsageError(
                f"{dataset.folder}: cell {cell.key}, block {int(without.iloc[0])} has no valid "
                "run of the default, so its runs cannot be compared",
                code="dataset.no_default",
            )
