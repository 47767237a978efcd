"""The catalog: finds datasets by name.

They are searched in ``./datasets``, in the user's own folder, and among those shipped with
autotune.  The order is that of configurations.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from autotune.config.find import package_data
from autotune.datasets.card import CARD
from autotune.errors import UsageError
from runner import files
from runner.files.paths import is_file, is_folder, real_path

FOLDER = Path("datasets")
"""Folder of new datasets, below the current directory."""


def own_folder() -> Path:
    """The user's own folder: ``$XDG_DATA_HOME/autotune/datasets``."""
    return files.data("datasets")


def folders() -> list[Path]:
    """The directories that are searched, in this order."""
    coming = package_data("datasets")
    return [FOLDER, own_folder(), *([coming] if isinstance(coming, Path) else [])]


def is_shipped(folder: Path) -> bool:
    """True if a dataset is shipped with autotune, and is not one of the current directory."""
    coming, real = package_data("datasets"), real_path(folder)
    own = real.is_relative_to(real_path(FOLDER))
    return isinstance(coming, Path) and not own and real.is_relative_to(real_path(coming))


def list_datasets() -> list[Path]:
    """Every dataset, by name; of equal names, the one that :func:`folder_of` finds."""
    folders_by_name: dict[str, Path] = {}
    for place in folders():
        # A name with a dot in front is an unfinished import whose process was killed.
        for card in place.glob(f"[!.]*/{CARD}"):
            folders_by_name.setdefault(card.parent.name, card.parent)
    return [folders_by_name[name] for name in sorted(folders_by_name)]


def is_known(place: str | Path) -> bool:
    """True if there is a dataset with this name, or in this folder."""
    return any(is_file(folder / CARD) for folder in _candidate_folders(place))


def folder_of(place: str | Path) -> Path:
    """The folder itself, or the first dataset with that name; raises UsageError without one."""
    for folder in _candidate_folders(place):
        if is_file(folder / CARD):
            return folder
    if is_folder(place):
        return Path(place)  # Its card is missing: the reader reports it.
    names = [folder.name for folder in list_datasets()]
    near = difflib.get_close_matches(str(place), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known datasets: {', '.join(names)}"
    raise UsageError(
        f"no dataset {str(place)!r} ({hint if names else 'there are none'}); searched "
        "as a folder, and as a name in "
        f"{', '.join(f'{folder}' for folder in folders())}",
        code="dataset.unknown",
    )


def _candidate_folders(place: str | Path) -> list[Path]:
    name = Path(place)
    return [name, *(folder / name for folder in folders() if not name.is_absolute())]
