"""Whether a library understands a value of a parameter, and what else was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from autotune.nearest import nearest
from autotune.parameters.catalogue import BELOW, LIBFABRIC, UCX, Catalogue, KnownParameter
from autotune.space.check import refused_value
from autotune.space.setting import Value
from runner.mpi.library import ParamInfo, enumerated_values, normalise

_WHOLE = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SWITCH = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "1", "0", "try"])
_FREE_WORDS = frozenset({"inf", "auto"})
"""Words that UCX takes in place of a number."""
_ALIASES = {("btl", "vader"): "sm", ("btl", "sm"): "vader"}
"""A component -> its name in another generation, which is accepted as well."""


def value_problem(value: str, known: KnownParameter, catalogue: Catalogue) -> tuple[str, str]:
    """Why a value is not understood, as a sentence, and the value that was probably meant.

    Both are "" for a value that is understood, or of which nothing is known.
    """
    info = known.info
    if info is None or not value:
        return "", ""
    if known.layer in BELOW.values():
        return _below(value, info, known.layer)
    if problem := _component_problem(value, info, catalogue):
        return problem
    if catalogue.family == "openmpi":
        return _open_mpi(value, info)
    return _hydra(value, info, catalogue.family)


def _open_mpi(value: str, info: ParamInfo) -> tuple[str, str]:
    # A level of verbosity is any number or one of some words.
    if info.name.endswith("verbose") and _WHOLE.fullmatch(value):
        return "", ""
    problem = refused_value(_typed(normalise(value, info)), info)
    if problem is None or (info.type == "bool" and _WHOLE.fullmatch(value)):
        return "", ""
    return problem, _near(value, info.enum.values())


def _typed(text: str) -> Value:
    """The number of a text; the text itself if it is none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _hydra(value: str, info: ParamInfo, family: str) -> tuple[str, str]:
    if info.by_name:
        words = info.only_words
        return ("", "") if value in words else (_not_among(value, words), _near(value, words))
    # A value of Intel MPI may name several algorithms, each for a range of sizes: 2:0-1024;3.
    if info.type not in ("int", "double") or set(":;,") & set(value):
        return "", ""
    if value.lower() in _SWITCH | {"enable", "disable"} and not info.enum:
        return "", ""
    if not _DECIMAL.fullmatch(value) and not re.fullmatch(r"\d+[kKmMgG]?[bB]?", value):
        return f"{value!r} is not a number", ""
    if family == "impi" and info.enum and _WHOLE.fullmatch(value) and int(value) not in info.enum:
        return f"{value} is not among {enumerated_values(info.enum)}", ""
    return "", ""


def _below(value: str, info: ParamInfo, layer: str) -> tuple[str, str]:
    lower = value.lower()
    if layer == UCX and info.enum:
        words = [word.lower() for word in info.enum.values()]
        is_known = lower in words or _WHOLE.fullmatch(value)
        return ("", "") if is_known else (_not_among(value, words), _near(lower, words))
    if info.type == "bool" and (layer in (UCX, LIBFABRIC)) and lower not in _SWITCH:
        return f"{value!r} is neither y nor n", ""
    is_number = info.type in ("int", "unsigned", "size_t", "double")
    if is_number and lower not in _FREE_WORDS and not re.match(r"-?(0x)?[0-9]", lower):
        return f"{value!r} is not a number", ""
    return "", ""


def _component_problem(value: str, info: ParamInfo, catalogue: Catalogue) -> tuple[str, str] | None:
    """For a parameter that selects components (``btl``): those that are not installed."""
    known = catalogue.components.get(info.name)
    if not known or info.framework not in ("", info.name) or "_" in info.name:
        return None
    names = value.removeprefix("^").split(",")
    unknown = [
        name
        for name in names
        if name and name not in known and _ALIASES.get((info.name, name)) not in known
    ]
    # A component that is excluded need not be there.
    if not unknown or value.startswith("^"):
        return "", ""
    near = _near(unknown[0], known)
    right = ",".join(near if name == unknown[0] and near else name for name in names)
    what = f"the framework {info.name} has no component {unknown[0]}: {', '.join(sorted(known))}"
    return what, right if near else ""


def _not_among(value: str, words: Iterable[str]) -> str:
    return f"{value!r} is not among {', '.join(words)}"


def _near(value: str, words: Iterable[str]) -> str:
    return next(iter(nearest(value, words)), "")
