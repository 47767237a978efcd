"""Words of an application's command: placeholders, and the file of a program the user brings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from autotune.errors import UsageError

_PLACE = re.compile(r"\{(\w+)\}")


def fill(word: str, values: dict[str, str], app: str, howto: str = "") -> str:
    """``word`` with every ``{name}`` replaced; one in capitals may be an environment variable.

    Raises UsageError for a variable that is not set; ``howto`` says how to come by the program.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            return values[name]
        if not name.isupper():
            known = ", ".join(sorted(values))
            raise UsageError(f"app {app!r}: {word!r} has no value for {{{name}}}; known: {known}")
        if os.environ.get(name):
            return os.environ[name]
        raise UsageError(
            f"app {app!r} needs the environment variable {name} (the directory of its "
            f"program), which is not set.  Set it: export {name}=...{_below(howto)}"
        )

    return _PLACE.sub(value, word)


def executable(files: Iterable[str], values: dict[str, str], app: str, howto: str = "") -> str:
    """The first of ``files`` that is there, as an absolute path.

    Raises UsageError that lists where it was looked for, or names the file that cannot be run.
    """
    paths = [Path(fill(file, values, app, howto)).expanduser().absolute() for file in files]
    for path in dict.fromkeys(paths):
        if path.is_file():
            if os.access(path, os.X_OK):
                return str(path)
            raise UsageError(
                f"app {app!r}: {path} exists but may not be executed.  Allow it: chmod +x {path}"
            )
    looked = "\n".join(f"  {path}" for path in dict.fromkeys(paths))
    variables = sorted({n for file in files for n in _PLACE.findall(file) if n.isupper()})
    change = f"Point {' and '.join(variables)} to where it is." if variables else ""
    raise UsageError(
        f"app {app!r}: its program was not found.  Expected one of\n{looked}\n"
        f"{change}{_below(howto)}"
    )


def _below(howto: str) -> str:
    return f"\n{howto}" if howto else ""
