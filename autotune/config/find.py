"""Configuration files by name: the user's files first, then the site's, then the shipped ones.

The order is ``./configs/KIND``, ``$XDG_CONFIG_HOME/autotune/KIND`` (or ``~/.config``), ``KIND`` in
the directories of the site, then the package.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from autotune.config.site import site_directories
from autotune.errors import UsageError
from runner import files
from runner.files import MIB, paths, read_text

SUFFIX = ".toml"
LARGEST = MIB
"""Largest size of a configuration file, in bytes."""


@dataclass(frozen=True)
class ConfigFile:
    """One configuration: its short name, where it was found (for messages), and its text."""

    name: str
    path: str
    text: str


def find_config(kind: str, name: str) -> ConfigFile:
    """The configuration of a kind ("spaces", "apps", "clusters") by name, or by path.

    A name that ends in ``.toml`` or contains a slash is a path. Raises :class:`UsageError` with the
    places that were searched and with similar names.
    """
    if name.endswith(SUFFIX) or "/" in name or os.sep in name:
        return read_file(Path(name).expanduser())
    places = _places(kind)
    for place in places:
        file = place / f"{name}{SUFFIX}"
        if name and _is_file(file):
            return ConfigFile(name, str(file), _read(file))
    raise UsageError(_missing_message(kind, name, places), code="config.missing")


def read_file(path: Path) -> ConfigFile:
    """The configuration in one file; raises UsageError if the file cannot be read."""
    return ConfigFile(path.name.removesuffix(SUFFIX), str(path), _read(path))


def list_configs(kind: str) -> list[ConfigFile]:
    """Every configuration of a kind, by name; of equal names the one that ``find`` takes."""
    files_by_name: dict[str, ConfigFile] = {}
    for place in _places(kind):
        for file in _entries(place):
            name = file.name.removesuffix(SUFFIX)
            if file.name.endswith(SUFFIX) and name and name not in files_by_name and _is_file(file):
                files_by_name[name] = ConfigFile(name, str(file), _read(file))
    return [files_by_name[name] for name in sorted(files_by_name)]


def _is_file(file: Path | Traversable) -> bool:
    return paths.is_file(file) if isinstance(file, Path) else file.is_file()


def _entries(place: Path | Traversable) -> Iterable[Path | Traversable]:
    """The files of a place, in any order; none if it cannot be listed."""
    if isinstance(place, Path):
        return paths.entries(place)
    return place.iterdir() if place.is_dir() else ()


def is_shipped(file: ConfigFile) -> bool:
    """True if a configuration comes with autotune, wherever it was found."""
    place = package_data("configs")
    return isinstance(place, Path) and Path(file.path).resolve().is_relative_to(place.resolve())


def user_config() -> Path:
    """The folder ``$XDG_CONFIG_HOME/autotune``, or the one below ``~/.config``."""
    return files.config()


def _places(kind: str) -> list[Path | Traversable]:
    return [
        Path("configs") / kind,
        user_config() / kind,
        *(directory / kind for directory in site_directories()),
        package_data("configs") / kind,
    ]


def package_data(name: str) -> Traversable:
    """Package data of that name ("configs", "datasets") of an installed wheel.

    In a source tree it is the top-level folder.
    """
    package = resources.files("autotune")
    data = package / "_data" / name
    if data.is_dir() or not isinstance(package, Path):
        return data
    return package.parent / name


def _read(file: Path | Traversable) -> str:
    try:
        if isinstance(file, Path):
            return read_text(file, LARGEST)
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot read {file}: {reason}; expected a TOML file", code="config.unreadable"
        ) from error


def _missing_message(kind: str, name: str, places: list[Path | Traversable]) -> str:
    names = [file.name for file in list_configs(kind)]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"known names: {', '.join(names) or 'none'}"
    searched_places = ", ".join(str(place) for place in places)
    return f"no {kind.removesuffix('s')} called {name!r} ({hint}); searched {searched_places}"
