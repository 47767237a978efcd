"""The setting syntax of the command line: ``default``, ``name=value``, ``@file``, ``study:ID``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.space.trust import check_values
from autotune.store import Store

_LARGEST = 1 << 20


def read_setting(text: str, space: Space, store: Store | None = None) -> Setting:
    """The setting that ``text`` means, checked against ``space`` (levels off the grid are allowed).

    ``@file`` is JSON, TOML, or ``name = value`` and ``--mca name value`` lines; ``study:ID`` is
    what that study recommended, and needs ``store``.  From either, a parameter that decides which
    program, library or file is used is refused.  Raises UsageError.
    """
    if text.startswith("@"):
        setting = _from_file(Path(text[1:]))
    elif text.startswith("study:"):
        setting = _from_study(text[6:], store)
    else:
        setting = Setting.parse(text)
    if text.startswith(("@", "study:")):
        # Not typed here: a file or a database may say less than this command line.
        check_values(setting, text, space)
    problems = space.violations(setting, grid=False)
    if problems:
        raise UsageError(f"the setting {text!r} cannot be used: " + "; ".join(problems))
    return space.canonical(setting)


def _from_study(wanted: str, store: Store | None) -> Setting:
    if store is None:
        raise UsageError("study:ID needs the results database; none was opened")
    study = store.find_study(wanted)
    result = study.result
    if result is None or "recommended" not in result:
        raise UsageError(
            f"study {study.hash[:12]} has no result yet (status {study.status}); finish it first"
        )
    values = dict(result["recommended"]["setting"])
    if not values and result.get("best"):
        raise UsageError(
            f"study {study.hash[:12]} recommends the default; its best unproven setting is "
            f"{Setting(result['best']['setting']).key}: give that text to use it all the same"
        )
    return Setting(values)


def _from_file(path: Path) -> Setting:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is too large to be a setting (1 MiB at most)")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read the setting {path}: {problem}") from None
    for reader in (_json, _toml):
        values = reader(text)
        if values is not None:
            return Setting(values)
    return _lines(text, path)


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


def _lines(text: str, path: Path) -> Setting:
    pairs = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].replace("=", " ").split()
        if not words:
            continue
        if words[0] in ("--mca", "-mca"):
            words = words[1:]
        if len(words) != 2:
            raise UsageError(
                f"{path}, line {number}: {line.strip()!r} is not understood; expected JSON, TOML, "
                "'name = value' or '--mca name value'"
            )
        pairs.append(f"{words[0]}={words[1]}")
    return Setting.parse(",".join(pairs) or "default")
