"""What may stand in a published file: names and values that no reader can take for anything else.

A published file is read by MPI libraries, shells, Tcl, Lua, YAML and browsers, often with the
rights of a whole cluster.  One narrow alphabet for all of them is safer than an escape for each:
there is nothing in it that ends a line, a word, a string or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from autotune.errors import UsageError
from autotune.space.trust import runs_programs

TABLES = ("coll_tuned_dynamic_rules_filename", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE")
"""Parameters that name a file which autotune publishes itself."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,199}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:^+=/@%-]{1,500}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,199}")
_PATH = re.compile(r"/[A-Za-z0-9_.,:+=/@%-]{1,1000}")
_COMMENT = re.compile(r"[^ A-Za-z0-9_.,:;^+=/@%()\[\]-]")


def check_name(name: str) -> str:
    """``name`` if it is that of an MPI parameter; else UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be published as a parameter name; expected a letter, then letters, "
            "digits and _"
        )
    if runs_programs(name) and name not in TABLES:
        raise UsageError(
            f"{name} cannot be published: it decides which program, library or file is used; "
            "expected a parameter of how MPI behaves"
        )
    return name


def check_value(name: str, value: str) -> str:
    """``value`` if every format can say it literally; else UsageError naming the parameter."""
    if not _VALUE.fullmatch(value):
        raise UsageError(
            f"{name} = {value!r} cannot be published; expected 1 to 500 letters, digits "
            "and _ . , : ^ + - = / @ % (no blanks, quotes or shell characters)"
        )
    return value


def check_variable(name: str) -> str:
    """``name`` if it is an environment variable that may be published; else UsageError."""
    if not _VARIABLE.fullmatch(name) or runs_programs(name):
        raise UsageError(
            f"the environment variable {name!r} cannot be published; expected capitals, "
            "digits and _, and not a variable that decides which programs run (PATH, LD_*, "
            "HOME, ...)"
        )
    return name


def check_path(path: str) -> str:
    """``path`` if a published file may name it; else UsageError."""
    if not _PATH.fullmatch(path):
        raise UsageError(
            f"the path {path!r} cannot be named in a published file; expected an absolute path of "
            "letters, digits and _ . , : + - = / @ %"
        )
    return path


def check_groups(groups: Mapping[str, Mapping[str, str]]) -> None:
    """Raise UsageError where a name or value of a launch cannot be published."""
    for group, values in groups.items():
        for name, value in values.items():
            check_variable(name) if group == "env" else check_name(name)
            check_value(name, value)


def comment_text(text: str) -> str:
    """``text`` as it may stand in a comment of any format: one line, no sign that could end it."""
    plain = _COMMENT.sub("?", " ".join(text.split()))
    return plain.replace("--", "-").replace("]]", "] ]")
