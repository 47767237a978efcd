"""Rules for names from files, options and databases that become file names.

A name from outside is joined to a folder only if :func:`is_plain` accepts it.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from autotune.errors import UsageError

NAME_RULE = (
    "1 to 80 of the letters A to Z and a to z, digits, '_', '-', '+' and '.', "
    "the first a letter, digit or '_'"
)
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")
_LONGEST_FILE_NAME = 255
_MOST_CHARACTERS = 60


def is_plain(name: object) -> bool:
    """True if a file of this name stays in the folder to which the name is joined."""
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


def plain_name(name: str, what: str) -> str:
    """The name itself; raises UsageError, which begins with ``what``, if the name is not plain."""
    if not is_plain(name):
        raise UsageError(
            f"{what}: {name[:_MOST_CHARACTERS]!r} cannot name a file; expected {NAME_RULE}",
            code="name.invalid",
        )
    return name


def config_name(name: str, what: str) -> str:
    """The name of a configuration, unchanged.

    Raises UsageError, which begins with ``what``, if the name cannot be that of a configuration.
    """
    if not is_config_name(name) or "+" in name:
        raise UsageError(
            f"{what}: {name[:_MOST_CHARACTERS]!r} cannot name a TOML file; expected {NAME_RULE}",
            code="name.invalid",
        )
    return name


def is_file_name(name: object) -> bool:
    """True if this names one entry of a folder; all printable characters but ``/`` are allowed."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "/" not in name
        and name.isprintable()
        and len(name.encode(errors="surrogatepass")) <= _LONGEST_FILE_NAME
    )


def is_config_name(name: object) -> bool:
    """True if this names configurations (several are joined by ``+``) and is not a path."""
    return isinstance(name, str) and all(
        is_plain(part.strip()) and not part.strip().endswith(".toml") for part in name.split("+")
    )


def names_path(name: str) -> bool:
    """True if a configuration of this name is looked up as the path of a file."""
    return any("/" in part or part.strip().endswith(".toml") for part in name.split("+"))


def slug(text: str) -> str:
    """A plain name that resembles the text; for programs, whose names may have any characters."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).lstrip("-_")[:80]
    return name or "program"


def _plain(name: str) -> str:
    if not is_plain(name):
        raise ValueError(f"cannot name a file; expected {NAME_RULE}")
    return name


def _config(name: str) -> str:
    if not is_config_name(name):
        raise ValueError(
            "is not the name of a configuration: a file refers to another by its name, "
            f"never by its path (put the other file into ./configs); expected {NAME_RULE}"
        )
    return name


PlainName = Annotated[str, AfterValidator(_plain)]
"""A name in a file that becomes a file name."""
ConfigName = Annotated[str, AfterValidator(_config)]
"""A name in a file that refers to a configuration."""
