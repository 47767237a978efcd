"""Switches of a library: a table of fields, their values and meaning, for checks and parsers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from runner.runtimes.intranode.errors import ConfigError

ON, OFF = "on", "off"
WAITS = ("auto", "spin", "yield")
"""The behaviour of a rank that finds nothing."""
Choices = tuple[str, ...] | tuple[int, int]
"""The words that a switch accepts, or the smallest and the largest number."""
Table = Mapping[str, tuple[str, Choices, str]]
"""Switch -> its field, values or bounds, and meaning."""


def spins(config: Any, is_crowded: bool) -> int:
    """Looks before a waiting rank yields its core, -1 for never; ``auto`` yields if crowded."""
    yields = is_crowded if config.waiting == "auto" else config.waiting == "yield"
    return int(config.spins) if yields else -1


def check(table: Table, config: Any) -> None:
    """Raise :class:`ConfigError`, which names the switch, for an impossible field."""
    for switch, (field, choices, _) in table.items():
        value = getattr(config, field)
        if isinstance(value, str):
            if value not in choices:
                raise ConfigError(
                    f"--{switch} {value}: expected one of {', '.join(map(str, choices))}",
                    code="intranode.option",
                )
        elif not isinstance(value, bool):
            least, most = choices
            if not int(least) <= value <= int(most):
                raise ConfigError(
                    f"--{switch} {value}: expected {least} to {most}", code="intranode.option"
                )


def add(group: Any, table: Table, defaults: Any, leave: str = "") -> None:
    """Add switches, without ``leave``, to a parser or group; missing ones are None.

    ``defaults``: an object with the fields.
    """
    for switch, (field, choices, text) in table.items():
        if switch == leave:
            continue
        value = getattr(defaults, field)
        if isinstance(value, int) and not isinstance(value, bool):
            text += f"; default {value}"
            group.add_argument(f"--{switch}", type=int, metavar="N", help=text)
            continue
        value = value if isinstance(value, str) else ON if value else OFF
        text += f": {', '.join(map(str, choices))}; default {value}"
        group.add_argument(f"--{switch}", metavar="WORD", help=text)


def given_switches(table: Table, options: argparse.Namespace) -> dict[str, Any]:
    """The switches that a command line has, with their values."""
    values = {switch: getattr(options, switch.replace("-", "_"), None) for switch in table}
    return {switch: value for switch, value in values.items() if value is not None}


def fields_of(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that switches set; raises :class:`ConfigError` for invalid values."""
    fields = {}
    for switch, value in values.items():
        if switch not in table:
            raise ConfigError(
                f"--{switch} is unknown; expected one of {', '.join(table)}",
                code="intranode.option",
            )
        field, choices, _ = table[switch]
        number = isinstance(choices[0], int)
        if type(value) is not (int if number else str):
            kind = "a whole number" if number else "a word"
            raise ConfigError(f"--{switch} {value!r}: expected {kind}", code="intranode.option")
        if choices == (ON, OFF):
            if value not in choices:
                raise ConfigError(
                    f"--{switch} {value}: expected {ON} or {OFF}", code="intranode.option"
                )
            value = value == ON
        fields[field] = value
    return fields


def parse_value(table: Table, switch: str, value: str) -> int | str:
    """A text, as a number if the switch accepts numbers; on and off may be 1 and 0.

    Raises :class:`ConfigError`.
    """
    choices = table[switch][1] if switch in table else ("",)
    if isinstance(choices[0], str):
        return {"1": ON, "0": OFF}.get(value, value) if ON in choices else value
    try:
        return int(value)
    except ValueError:
        raise ConfigError(
            f"{switch} {value}: expected a whole number", code="intranode.option"
        ) from None
