"""The settings that were published for a machine: a small JSON file that the library reads.

It is ``$CAB_CONFIG`` (empty: none), else ``$XDG_CONFIG_HOME/autotune/cab.json`` if there is one.
:mod:`.publish` writes it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.files import atomic_file
from runner.intranode.config import Config, fields_of, from_arguments, given_switches
from runner.intranode.errors import ConfigError

SCHEMA = "cab/1"
VARIABLE = "CAB_CONFIG"
_LARGEST = 1 << 16
"""Most bytes of a file."""
_KEYS = {"schema", "settings", "evidence"}


def place() -> Path | None:
    """The file that the library reads; None if there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    path = usual_place()
    return path if path.exists() else None


def usual_place() -> Path:
    """Where the file is looked for if nobody names one."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "autotune" / "cab.json"


def read(path: Path) -> dict[str, Any]:
    """The fields of :class:`Config` that a file sets, checked.

    Raises :class:`ConfigError`, which names the file, for one that cannot be read, that has unknown
    keys, or whose values cannot be.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ConfigError(f"it has more than {_LARGEST} bytes")
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise ConfigError(f'expected an object with "schema": "{SCHEMA}"')
        if unknown := sorted(found.keys() - _KEYS):
            raise ConfigError(f"unknown key {unknown[0]!r}; expected {', '.join(sorted(_KEYS))}")
        settings = found.get("settings")
        if not isinstance(settings, dict):
            raise ConfigError('expected "settings" with an object of switches and values')
        fields = fields_of(settings)
        Config(**fields)
    except OSError as error:
        raise _wrong(path, str(error.strerror)) from None
    except (ValueError, RecursionError):
        raise _wrong(path, "it is no JSON") from None
    except ConfigError as error:
        raise _wrong(path, str(error).removeprefix("--")) from None
    return fields


def _wrong(path: Path, problem: str) -> ConfigError:
    return ConfigError(
        f"the published settings in {path}: {problem}; correct or remove the file, or set "
        f"{VARIABLE}= to read none"
    )


def published() -> tuple[Config, str]:
    """The configuration of this machine, and its file or ``"defaults"``."""
    path = place()
    return (Config(), "defaults") if path is None else (Config(**read(path)), str(path))


def configured(given: argparse.Namespace) -> tuple[Config, str]:
    """The configuration of a command line, and where it came from.

    Switches come before the file, which comes before the defaults.  ``--steal-config`` names
    another file, or ``none``.  The second value is ``"defaults"``, the file, ``"switches"``, or
    the file and ``", switches"``.  Raises :class:`ConfigError`.
    """
    path = place() if given.steal_config is None else Path(given.steal_config)
    if given.steal_config == "none":
        path = None
    base = {} if path is None else read(path)
    sources = [] if path is None else [str(path)]
    if given_switches(given):
        sources.append("switches")
    return from_arguments(given, base), ", ".join(sources) or "defaults"


def write(path: Path, settings: Mapping[str, Any], evidence: Sequence[str] = ()) -> None:
    """Write checked settings (switch: value), with where they come from.

    Raises :class:`ConfigError` if they cannot be, and ``OSError``.
    """
    Config(**fields_of(settings))
    found = {"schema": SCHEMA, "settings": dict(sorted(settings.items())), "evidence": [*evidence]}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, 0o644) as staged:
        staged.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
