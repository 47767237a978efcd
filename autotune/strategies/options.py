"""Options of strategies: one table per strategy for its documentation and validation.

Also checks the packages that some strategies need and that autotune does not install.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from autotune.errors import UsageError
from autotune.extras import EXTRAS

OptionValue = int | float | str


@dataclass(frozen=True)
class Option:
    """One option; ``bounds`` are the smallest and largest number, or the allowed words."""

    name: str
    type: Literal["int", "float", "choice"]
    default: OptionValue
    doc: str
    bounds: tuple[OptionValue, ...] = ()

    @property
    def range(self) -> str:
        """The valid values for readers."""
        if self.type == "choice":
            return " | ".join(str(word) for word in self.bounds)
        return f"{self.bounds[0]} to {self.bounds[1]}"

    def read(self, raw_value: OptionValue) -> OptionValue:
        """The value of a user's or caller's input; raises :class:`UsageError` if invalid."""
        if self.type == "choice":
            if raw_value in self.bounds:
                return raw_value
            raise self._wrong(raw_value, f"one of {self.range}")
        kind = int if self.type == "int" else float
        try:
            value = kind(raw_value)
        except ValueError:
            value = None
        if value is None or not self._within(value):
            noun = "a whole number" if self.type == "int" else "a number"
            raise self._wrong(raw_value, f"{noun} from {self.range}")
        return value

    def _within(self, value: float) -> bool:
        low, high = self.bounds
        return float(low) <= value <= float(high)

    def _wrong(self, raw_value: OptionValue, expectation: str) -> UsageError:
        return UsageError(
            f"option {self.name}={raw_value}: expected {expectation}", code="strategy.option_range"
        )


def table(*options: Option) -> dict[str, Option]:
    """The options by name, in the order of the documentation."""
    return {option.name: option for option in options}


def complete(
    owner: str, options: Mapping[str, Option], *layers: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    """Every option with its value: the defaults, overridden by each layer in turn.

    Raises :class:`UsageError` for an unknown name or a value out of range.
    """
    values = {name: option.default for name, option in options.items()}
    for layer in layers:
        for name, raw_value in layer.items():
            if name not in options:
                raise UsageError(
                    _unknown_option(owner, name, options), code="strategy.option_unknown"
                )
            values[name] = options[name].read(raw_value)
    return values


def hint(word: str, known_names: Iterable[str]) -> str:
    """The text ``; did you mean x?`` if there is a similar name, then all known names."""
    names = list(known_names)
    near = difflib.get_close_matches(word, names, n=2, cutoff=0.5)
    guess = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{guess} (known: {', '.join(names)})" if names else " (it has none)"


def _unknown_option(owner: str, name: str, options: Mapping[str, Option]) -> str:
    return f"strategy {owner} has no option {name!r}{hint(name, options)}"


def missing_package(packages: Sequence[str]) -> list[str]:
    """The packages that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def need(strategy: str, packages: Sequence[str]) -> None:
    """Raise :class:`UsageError` if a package is not installed."""
    absent = missing_package(packages)
    if absent:
        raise UsageError(
            f"strategy {strategy} needs {' and '.join(absent)}, which is not installed: "
            f"pip install {' '.join(map(_to_install, absent))}, or choose another strategy (auto "
            "needs nothing more)",
            code="strategy.missing",
        )


def _to_install(package: str) -> str:
    """What pip installs for a package: the extra that brings it, if there is one."""
    return f'"mpi-autotune[{EXTRAS[package][0]}]"' if package in EXTRAS else package
