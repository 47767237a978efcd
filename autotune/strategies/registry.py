"""Registry of strategies by name: autotune's own and those of installed packages.

A package names its strategies in the entry point group ``autotune.strategies``
(docs/howto/extending.md).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.strategies.base import Strategy
from autotune.strategies.options import OptionValue, complete, hint
from runner.extensions import extension, extension_names

_PLACES: dict[str, str] = {
    "auto": "auto:Auto",
    "ga": "ga.strategy:Genetic",
    "random": "random_search:RandomSearch",
    "exhaustive": "exhaustive:Exhaustive",
    "optuna:TPESampler": "optuna_samplers:TPE",
    "optuna:NSGAIISampler": "optuna_samplers:NSGA2",
    "optuna:CmaEsSampler": "optuna_samplers:CMAES",
    "optuna:GPSampler": "optuna_samplers:GaussianProcess",
}
"""Module and class of each strategy; a module is imported when its strategy is requested."""
GROUP = "autotune.strategies"


@functools.cache
def _installed_names() -> tuple[str, ...]:
    """Names of the strategies of installed packages; autotune's own are never replaced."""
    return extension_names(GROUP, _PLACES)


def names() -> tuple[str, ...]:
    """Names of all strategies."""
    return (*_PLACES, *_installed_names())


def _own(name: str) -> type[Strategy]:
    module, _, attribute = _PLACES[name].partition(":")
    strategy_class: type[Strategy] = getattr(
        import_module(f"autotune.strategies.{module}"), attribute
    )
    return strategy_class


def find(name: str) -> type[Strategy]:
    """The class of a strategy.

    Raises :class:`UsageError`, with similar names, for an unknown one, and RunnerError if the
    strategy of an installed package cannot be loaded or is not a strategy.
    """
    if name in _PLACES:
        return _own(name)
    if name not in _installed_names():
        raise UsageError(
            f"strategy {name!r} is not known{hint(name, names())}", code="strategy.unknown"
        )
    strategy_class = extension(GROUP, name, Strategy)  # type: ignore[type-abstract]
    if strategy_class.name != name:
        raise UsageError(
            f"the entry point {name} of the group {GROUP} has a strategy called "
            f"{strategy_class.name!r}; expected the same name",
            code="extension.invalid",
        )
    return strategy_class


def code_of(strategy: type[Strategy]) -> str:
    """Distinguishes a strategy passed as an object from others of the same name.

    A digest of its source (of its name if there is no source); empty for a registered strategy.
    """
    if strategy.name in names() and find(strategy.name) is strategy:
        return ""
    try:
        source = inspect.getsource(strategy)
    except (OSError, TypeError):
        source = f"{strategy.__module__}.{strategy.__qualname__}"
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def create(
    name: str,
    space: Space,
    *,
    seed: int,
    priors: Sequence[Setting] = (),
    options: Mapping[str, OptionValue] | None = None,
) -> Strategy:
    """A new strategy; raises :class:`UsageError` for an invalid name or option."""
    return find(name)(space, seed=seed, priors=priors, options=options)


def resolve_options(
    strategy: str | type[Strategy],
    user_options: Mapping[str, OptionValue],
    preset: str | None = None,
) -> dict[str, OptionValue]:
    """All options with their values: the defaults, then the preset's, then the user's.

    ``user_options`` may have texts as typed by a user. The result is part of a study's identity.
    Raises :class:`UsageError` for an invalid name, value or preset.
    """
    kind = find(strategy) if isinstance(strategy, str) else strategy
    if preset is not None and preset not in kind.presets:
        raise UsageError(
            f"strategy {kind.name} has no preset {preset!r}{hint(preset, kind.presets)}",
            code="strategy.preset_unknown",
        )
    base = kind.presets[preset] if preset is not None else {}
    values = complete(kind.name, kind.options, base, user_options)
    kind.check_options(values)
    return values


def describe() -> str:
    """Every strategy with its options as Markdown, for the command line and the manual."""
    return "\n".join(_describe(strategy) for strategy in map(_own, _PLACES))


def _describe(strategy: type[Strategy]) -> str:
    lines = [
        f"### {strategy.name}",
        "",
        f"{strategy.summary[0].upper()}{strategy.summary[1:]}.",
        "",
    ]
    if strategy.options:
        presets = list(strategy.presets)
        lines.append("| " + " | ".join(["option", "default", *presets, "range", "meaning"]) + " |")
        lines.append("|" + "---|" * (4 + len(presets)))
        for name, option in strategy.options.items():
            values = [str(strategy.presets[p].get(name, option.default)) for p in presets]
            legal = option.range.replace("|", "or")
            cells = [name, str(option.default), *values, legal, option.doc]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)
