"""Files that hold a setting: JSON, TOML, and what autotune and MPI libraries themselves write."""

from __future__ import annotations

import html
import json
import re
import tomllib
from pathlib import Path

from autotune.errors import UsageError
from autotune.space.setting import Value, normalise_value, read_value

_LARGEST = 1 << 20
_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)"
_QUOTED = r"(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"|\{(?P<three>[^{}]*)\}|(?P<bare>[^\s'\"{}]+))"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"--?(?:g?mca|prtemca|pmixmca)\s+{_NAME}\s+{_QUOTED}",  # a file for mpirun --tune
        rf"(?:export\s+)?{_NAME}\s*=\s*{_QUOTED}",  # mca-params.conf, sh
        rf"setenv\s+{_NAME}\s+{_QUOTED}",  # csh, Tcl
        rf"setenv\(\s*\"{_NAME}\"\s*,\s*{_QUOTED}\s*\)",  # Lua
        rf"{_NAME}:\s+{_QUOTED}",  # YAML
    )
)
_COMMENT = re.compile(r"\s*(#|--\s|<!--).*|\s*")
_TRAILING = re.compile(r"\s+#.*$")
_YAML = re.compile(r"\s*[A-Za-z0-9_-]+:")
_PAGE = re.compile(r'<pre id="settings">\n(.*?)</pre>', re.DOTALL)
_RULES = re.compile(r"rule-file-version-\d+|\d+\s*# collectives")
_TREE = ("rule_file_version", "collective=")


def read_setting_file(path: Path) -> dict[str, Value]:
    """Names and values of a file, as they are written there; nothing is checked against a space.

    It may be a result of ``--json``, JSON, TOML, a file that ``search`` or ``publish`` wrote in any
    format that holds values, or ``name = value`` lines.  Raises UsageError naming the line.
    """
    text = _read(path)
    for data in (_json(text), _toml(text)):
        if data is not None:
            if any(str(key).startswith(_TREE) for key in data):
                raise _rules(path)
            return {name: normalise_value(value) for name, value in data.items()}
    page = _PAGE.search(text)
    return _lines(html.unescape(page[1]) if page else text, path)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is too large to be a setting (1 MiB at most)")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read the setting {path}: {problem}") from None


def _json(text: str) -> dict[str, object] | None:
    try:
        data = json.loads(text)
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
    found: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if _COMMENT.fullmatch(line) or _YAML.fullmatch(line):
            continue
        plain = _TRAILING.sub("", line).strip()
        if _RULES.match(line.strip()):
            raise _rules(path)
        match = next((m for form in _FORMS if (m := form.fullmatch(plain))), None)
        if match is None:
            raise UsageError(
                f"{path}, line {number}: {line.strip()[:200]!r} is not understood; expected JSON, "
                "TOML, 'name = value', '--mca name value', or a file that autotune wrote"
            )
        groups = match.groupdict()
        value = read_value(next(v for n, v in groups.items() if n != "name" and v is not None))
        if found.setdefault(match["name"], value) != value:
            raise UsageError(
                f"{path}, line {number}: {match['name']} is given twice, with different "
                "values; keep one of them"
            )
    return found


def _rules(path: Path) -> UsageError:
    return UsageError(
        f"{path} has rules for collectives by message size; expected values of "
        "parameters.\nThe library reads such a file itself (autotune publish shows "
        "how)."
    )
