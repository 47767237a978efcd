"""The published settings of a machine: a small JSON file that a library reads.

That of CAB is ``$CAB_CONFIG`` (empty: none), else ``$XDG_CONFIG_HOME/autotune/cab.json`` if there
is one.  :mod:`.publish` writes it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import files
from runner.files import write_atomically
from runner.files.paths import exists
from runner.files.private_files import make_folder
from runner.runtimes.intranode import switches
from runner.runtimes.intranode.errors import ConfigError

_LARGEST = 1 << 16
"""Maximum size of a file in bytes."""
_KEYS = {"schema", "settings", "evidence"}


@dataclass(frozen=True)
class TunedLibrary:
    """A library with settings that can be published.

    ``name``: the name of its file and schema; ``config``: its configuration, a self-checking
    dataclass; ``table``: the switches; ``switch``: the switch for another file, without dashes.
    """

    name: str
    config: type[Any]
    table: switches.Table
    switch: str

    @property
    def schema(self) -> str:
        """The schema of its file."""
        return f"{self.name}/1"

    @property
    def variable(self) -> str:
        """The environment's variable that names its file."""
        return f"{self.name.upper()}_CONFIG"

    def place(self) -> Path | None:
        """The file that the library reads; None if there is none."""
        path_text = os.environ.get(self.variable)
        if path_text is not None:
            return Path(path_text) if path_text else None
        path = self.usual_place()
        return path if exists(path) else None

    def usual_place(self) -> Path:
        """The default path of the file."""
        return files.config(f"{self.name}.json")

    def read(self, path: Path) -> dict[str, Any]:
        """The fields of the configuration that a file sets, checked.

        Raises :class:`ConfigError` with the file's name if it is unreadable, or has unknown keys or
        impossible values.
        """
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST + 1)
            if len(text) > _LARGEST:
                raise ConfigError(
                    f"it has more than {_LARGEST} bytes", code="intranode.settings_file"
                )
            document = json.loads(text)
            if not isinstance(document, dict) or document.get("schema") != self.schema:
                raise ConfigError(
                    f'expected an object with "schema": "{self.schema}"',
                    code="intranode.settings_file",
                )
            if unknown := sorted(document.keys() - _KEYS):
                raise ConfigError(
                    f"unknown key {unknown[0]!r}; expected {', '.join(sorted(_KEYS))}",
                    code="intranode.settings_file",
                )
            settings = document.get("settings")
            if not isinstance(settings, dict):
                raise ConfigError(
                    'expected "settings" with an object of switches and values',
                    code="intranode.settings_file",
                )
            fields = switches.fields_of(self.table, settings)
            self.config(**fields)
        except OSError as error:
            raise self._wrong(path, str(error.strerror)) from None
        except (ValueError, RecursionError):
            raise self._wrong(path, "it is no JSON") from None
        except ConfigError as error:
            raise self._wrong(path, str(error).removeprefix("--")) from None
        return fields

    def _wrong(self, path: Path, problem: str) -> ConfigError:
        return ConfigError(
            f"the published settings in {path}: {problem}; correct or remove the file, or set "
            f"{self.variable}= to read none",
            code="intranode.settings_file",
        )

    def machine_config(self) -> tuple[Any, str]:
        """The configuration of this machine, and its file or ``"defaults"``."""
        path = self.place()
        if path is None:
            return self.config(), "defaults"
        return self.config(**self.read(path)), str(path)

    def add_arguments(self, group: Any, leave: str = "") -> None:
        """Add the switches, without ``leave``, to a parser or group; missing ones are None."""
        switches.add(group, self.table, self.config(), leave)
        group.add_argument(
            f"--{self.switch}",
            metavar="FILE",
            help="published settings to take instead of the defaults; none: none; default: "
            f"${self.variable}, or autotune/{self.name}.json in the user's configuration",
        )

    def from_options(self, options: argparse.Namespace) -> tuple[Any, str]:
        """The configuration of a command line, and its origin.

        Switches have precedence over the file, and the file over the defaults. ``switch`` names
        another file, or ``none``. The second value is ``"defaults"``, the file, ``"switches"``, or
        the file and ``", switches"``. Raises :class:`ConfigError`, which names the fault.
        """
        file = getattr(options, self.switch.replace("-", "_"))
        path = self.place() if file is None else None if file == "none" else Path(file)
        base = {} if path is None else self.read(path)
        sources = [] if path is None else [str(path)]
        own = switches.given_switches(self.table, options)
        if own:
            sources.append("switches")
        config = self.config(**{**base, **switches.fields_of(self.table, own)})
        return config, ", ".join(sources) or "defaults"

    def write(self, path: Path, settings: Mapping[str, Any], evidence: Sequence[str] = ()) -> None:
        """Write checked settings (switch: value) with their origin.

        Raises :class:`ConfigError` for impossible settings, and ``OSError``.
        """
        self.config(**switches.fields_of(self.table, settings))
        document = {
            "schema": self.schema,
            "settings": dict(sorted(settings.items())),
            "evidence": [*evidence],
        }
        make_folder(path.parent)
        write_atomically(path, json.dumps(document, indent=2) + "\n", 0o644)
