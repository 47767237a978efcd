"""Setting syntax of the command line: ``default``, ``name=value``, ``@file``, ``study:ID``.

Files with a setting may be JSON, TOML, or in the formats that autotune and MPI libraries write.
"""

from __future__ import annotations

import errno
import html
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.space.extra_parameters import (
    plain_names,
    with_extra_parameters,
    without_implied_values,
)
from autotune.space.library_choice import MPI
from autotune.space.outside_names import Names, check_values, known_names
from autotune.space.parameter import ParameterKind
from autotune.space.setting import Value, normalise_value, read_value
from autotune.store import Store
from runner import files
from runner.files.json_text import parse_json
from runner.mpi.library import Library

_OUTSIDE = ("@", "study:")
"""Prefixes of settings that are not typed; a file or a database may name fewer parameters."""


def read_settings(
    texts: Sequence[str], space: Space, library: Library, store: Store | None = None
) -> tuple[Space, list[Setting]]:
    """The settings that these texts stand for, and the space with all parameters that they name.

    ``@file`` is read by :func:`read_setting_file`. ``study:ID`` is the recommendation of that study
    and needs ``store``. Both may name only parameters of spaces that are shipped or the user's own,
    and none that decides which program, library or file is used. Raises UsageError for anything
    else.
    """
    settings: list[Setting] = []
    targets: dict[str, ParameterKind] = {}
    for text in texts:
        values = _values(text, store)
        own_values, more = plain_names(values if MPI in space else _under(library, values, text))
        own_values = without_implied_values(own_values, space)
        if text.startswith(_OUTSIDE):
            check_values(own_values, text, space)
            _require_known_names(own_values, text, space, library)
        settings.append(own_values)
        targets |= more
    wider = with_extra_parameters(space, settings, library, targets)
    if MPI in space and wider is not space:
        names = ", ".join(name for name in wider.names if name not in space)
        raise UsageError(
            f"no space of this search has {names}, and under several MPI libraries it is open "
            "which of them it is for; name a space that has it (--space)",
            code="mpi.ambiguous_parameter",
        )
    for text, setting in zip(texts, settings, strict=True):
        problems = wider.violations(setting, grid=False)
        if problems:
            raise UsageError(
                f"the setting {text!r} cannot be used: " + "; ".join(problems),
                code="setting.not_in_space",
            )
    return wider, [wider.canonical(setting) for setting in settings]


def _values(text: str, store: Store | None) -> Setting:
    if text.startswith("@"):
        return Setting(read_setting_file(Path(text[1:])))
    if text.startswith("study:"):
        return _from_study(text[6:], store)
    return Setting.parse(text)


def _under(library: Library, setting: Setting, text: str) -> Setting:
    """The setting without the name of its library, which must be this one.

    Raises UsageError for a setting that was found under another library.
    """
    own = f"{library.family}-{library.version}"
    if setting.get(MPI, own) != own:
        other = shlex.quote(str(setting[MPI]))
        raise UsageError(
            f"{text}: the setting is for another MPI library (mpi={setting[MPI]}) than this one "
            f"({own}); name it with --mpi {other}, or compare it with the default of another "
            f"library:\n  autotune compare --mpi P --mpi {other} default {shlex.quote(text)} ...",
            code="setting.other_library",
        )
    return setting.without(MPI)


def _require_known_names(setting: Setting, text: str, space: Space, library: Library) -> None:
    strange = [name for name in setting if name not in space and name not in space.absent]
    parameters: Names = known_names(library) if strange else {}
    for name in strange:
        if name not in parameters:
            raise UsageError(
                f"{text}: no space known here has {name}; from such a source only parameters "
                "of the shipped spaces and of your own are taken.\nIf you trust it, type it "
                f"({name}=VALUE), or name a space file that has it (--space FILE).",
                code="trust.parameter_unknown",
            )


def _from_study(study_id: str, store: Store | None) -> Setting:
    if store is None:
        raise UsageError(
            "study:ID needs a results database, and none is open; give --store",
            code="setting.no_store",
        )
    study = store.find_study(study_id)
    result = study.result
    if result is None or "recommended" not in result:
        raise UsageError(
            f"study {study.hash[:12]} has no result yet (status {study.status}); finish it first",
            code="study.no_result",
        )
    values = dict(result["recommended"]["setting"])
    if not values and result.get("best"):
        raise UsageError(
            f"study {study.hash[:12]} recommends the default. Its best setting, "
            f"{Setting(result['best']['setting']).key}, is not proven; to use it all the "
            "same, type it",
            code="study.no_recommendation",
        )
    return Setting(values)


VERSION_CHECK = "version check"
"""The end of each line of a published file that checks the library's version and sets nothing."""
_LARGEST = 1 << 20
_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)"
_VALUE = r"(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"|\{(?P<three>[^{}]*)\}|(?P<bare>[^\s'\"{}]+))"
_NO_SHELL = r"[^\s'\"{}|&$`()<>]"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"--?(?:g?mca|prtemca|pmixmca)\s+{_NAME}\s+{_VALUE}",  # a file for mpirun --tune
        rf"-g?env\s+{_NAME}\s+{_VALUE}",  # mpiexec.conf
        rf"(?:export\s+)?{_NAME}\s*=\s*{_VALUE}",  # mca-params.conf, sh
        rf"{_NAME}\s*=\s*(?P<blanks>{_NO_SHELL}+(?:\s+{_NO_SHELL}+)+)",  # mca-params.conf only
        rf"setenv\s+{_NAME}\s+{_VALUE}",  # csh, Tcl
        rf"setenv\(\s*\"{_NAME}\"\s*,\s*{_VALUE}\s*\)",  # Lua
        rf"{_NAME}:\s+{_VALUE}",  # YAML
        rf"\"{_NAME}\":\s+{_VALUE},",  # Python
    )
)
_COMMENT = re.compile(r"\s*(#|--\s|<!--).*|\s*")
_TRAILING = re.compile(r"\s+#.*$")
_YAML = re.compile(r"\s*[A-Za-z0-9_-]+:")
_PAGE = re.compile(r'<pre id="settings">\n(.*?)</pre>', re.DOTALL)
_TABLE = re.compile(r"^VARIABLES = \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
"""The variables of a file in Python; the rest of the file is not read."""
_RULES = re.compile(r"rule-file-version-\d+|\d+(?:\s+\d+)*\s*(?:#.*)?")
"""The first line of a file of rules that is no comment: a number, alone or with others."""
_TREE = ("rule_file_version", "collective=")


def read_setting_file(path: Path) -> dict[str, Value]:
    """Names and values of a file, as they are written there; they are not checked against a space.

    The file may be a result of ``--json``, JSON, TOML, a file that ``search`` or ``publish`` wrote
    in any format with values, or ``name = value`` lines. Raises UsageError with the line.
    """
    text = _read(path)
    for data in (_json(text), _toml(text)):
        if data is not None:
            if any(str(key).startswith(_TREE) for key in data):
                raise _rules(path)
            return {name: normalise_value(value) for name, value in data.items()}
    if page := _PAGE.search(text):
        return _lines(html.unescape(page[1]), path)
    table = _TABLE.search(text)
    return _lines(table[1] if table else text, path)


def _read(path: Path) -> str:
    try:
        return files.read_user_file(path, _LARGEST)
    except (OSError, UnicodeDecodeError) as problem:
        if getattr(problem, "errno", None) == errno.EFBIG:
            raise UsageError(
                f"{path} is too large to be a setting (1 MiB at most)", code="setting.too_large"
            ) from None
        raise UsageError(
            f"cannot read the setting {path}: {problem}", code="setting.unreadable"
        ) from None


def _json(text: str) -> dict[str, object] | None:
    try:
        data = parse_json(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, dict) and isinstance(data.get("recommended"), dict):
        data = data["recommended"].get("setting")
    return data if isinstance(data, dict) else None


def _toml(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _lines(text: str, path: Path) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if _COMMENT.fullmatch(line) or _YAML.fullmatch(line) or line.endswith(VERSION_CHECK):
            continue
        plain = _TRAILING.sub("", line).strip()
        if _RULES.fullmatch(line.strip()):
            raise _rules(path)
        match = next((m for form in _FORMS if (m := form.fullmatch(plain))), None)
        if match is None:
            raise UsageError(
                f"{path}, line {number}: {line.strip()[:200]!r} is not understood; expected JSON, "
                "TOML, 'name = value', '--mca name value', '-genv name value', or a file that "
                "autotune wrote",
                code="setting.syntax",
            )
        groups = match.groupdict()
        value = read_value(next(v for n, v in groups.items() if n != "name" and v is not None))
        if values.setdefault(match["name"], value) != value:
            raise UsageError(
                f"{path}, line {number}: {match['name']} is given twice, with different "
                "values; keep one of them",
                code="setting.conflict",
            )
    return values


def _rules(path: Path) -> UsageError:
    return UsageError(
        f"{path} has rules for collectives by message size; expected values of "
        "parameters.\nThe library reads such a file itself (autotune publish shows "
        "how).",
        code="setting.rules_file",
    )
