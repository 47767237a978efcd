"""Write the settings of a machine, which a library reads when it starts.

    python -m runner.runtimes.intranode.publish --from chunk_large=131072,bundle=off [-o FILE]
    python -m runner.runtimes.intranode.publish --library cab --from @result.json

The second uses the recommendation of ``autotune search --json result.json``. ``--from`` may be
repeated for searches with messages of several sizes: each finds the chunks of one range.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.runtimes.intranode.config import CAB
from runner.runtimes.intranode.daps.config import DAPS
from runner.runtimes.intranode.errors import ConfigError
from runner.runtimes.intranode.mcoll.config import MCOLL
from runner.runtimes.intranode.published import TunedLibrary
from runner.runtimes.intranode.switches import parse_value

LIBRARIES = {library.name: library for library in (CAB, DAPS, MCOLL)}


def setting(library: TunedLibrary, text: str) -> dict[str, Any]:
    """Switches and values from ``name=value,...``, or from ``@FILE``, the JSON of a search.

    Of the file only the recommended values of this library are taken.  Raises
    :class:`ConfigError`.
    """
    if text.startswith("@"):
        return _read_recommendation(library, Path(text[1:]))
    texts: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(f"{part!r}: expected name=value", code="intranode.settings_file")
        texts[name.strip().replace("_", "-")] = value.strip()
    return {name: parse_value(library.table, name, value) for name, value in texts.items()}


def _read_recommendation(library: TunedLibrary, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        status, values = document["status"], document["recommended"]["setting"]
        texts = {str(name).replace("_", "-"): str(value) for name, value in values.items()}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", code="intranode.settings_file") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(
            f"{path}: expected the file of autotune search --json", code="intranode.settings_file"
        ) from None
    if status != "recommended":
        raise ConfigError(
            f"{path}: the search ended as {status!r} and recommends nothing",
            code="intranode.settings_file",
        )
    table = library.table
    own = {name: parse_value(table, name, value) for name, value in texts.items() if name in table}
    if not own:
        raise ConfigError(
            f"{path}: the search recommends no value of this library: keep it so",
            code="intranode.settings_file",
        )
    return own


def main(arguments: Sequence[str]) -> int:
    """Write a file from settings; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m runner.runtimes.intranode.publish",
        description="Write the settings of this machine.",
    )
    add = parser.add_argument
    add("--from", dest="settings", action="append", required=True, metavar="SETTING",
        help="name=value,... or @FILE of autotune search --json; may be repeated")  # fmt: skip
    add("--library", choices=LIBRARIES, default=CAB.name, help=f"default {CAB.name}")
    add("-o", "--output", type=Path, metavar="FILE",
        help="default: autotune/LIBRARY.json in the user's configuration")  # fmt: skip
    options = parser.parse_args(arguments)
    library = LIBRARIES[options.library]
    output = options.output or library.usual_place()
    settings: dict[str, Any] = {}
    try:
        for text in options.settings:
            for name, value in setting(library, text).items():
                if settings.setdefault(name, value) != value:
                    raise ConfigError(
                        f"{name}: both {settings[name]} and {value}; choose one",
                        code="intranode.settings_file",
                    )
        library.write(output, settings, options.settings)
    except (ConfigError, OSError) as error:
        print(f"publish: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    print(f"wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
