"""Checks of a features file's content; errors name file and key."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from runner.errors import RunnerError

RETRY_HINT = "Write it again: autotune features -o FILE -- PROGRAM ARGS"


class FeaturesError(RunnerError):
    """An unusable features file."""


class EntryChecks:
    """Checks of single entries; each failure raises FeaturesError with file and key."""

    def __init__(self, place: str) -> None:
        self._place = place

    def fail(self, key: str, value: Any, expectation: str) -> NoReturn:
        value_text = repr(value)[:60]
        raise FeaturesError(
            f"{self._place}: {key} is {value_text}, expected {expectation}.\n{RETRY_HINT}",
            code="features.damaged",
        )

    def keys(self, key: str, data: dict[str, Any], expected_keys: Iterable[str]) -> None:
        names = tuple(expected_keys)
        dot = f"{key}." if key else ""
        missing = [f"{dot}{name}" for name in names if name not in data]
        unknown = [f"{dot}{name}" for name in data if name not in names]
        if missing:
            raise FeaturesError(
                f"{self._place}: missing {_few(missing)}.\n{RETRY_HINT}", code="features.damaged"
            )
        if unknown:
            raise FeaturesError(
                f"{self._place}: unknown {_few(unknown)}; the schema has no such key.\n"
                f"{RETRY_HINT}",
                code="features.damaged",
            )

    def mapping(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(key, value, "a JSON object")
        result: dict[str, Any] = value
        return result

    def number(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(key, value, "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < 0:
            self.fail(key, value, "a finite number of 0 or more")
        return number

    def natural(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(key, value, "a whole number of 1 or more")
        return int(value)

    def whole(self, key: str, value: Any, largest: float = math.inf) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
            limit = f" to {largest}" if math.isfinite(largest) else " or more"
            self.fail(key, value, f"a whole number of 0{limit}")
        return int(value)

    def truth(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            self.fail(key, value, "true or false")
        return bool(value)

    def elements(self, key: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            self.fail(key, value, "a list")
        result: list[Any] = value
        return result

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            self.fail(key, value, "a text")
        return str(value)

    def optional(self, key: str, value: Any) -> str | None:
        return None if value is None else self.text(key, value)

    def texts(self, key: str, value: Any) -> list[str]:
        if not isinstance(value, list) or not value:
            self.fail(key, value, "a list of texts, the program first")
        return [self.text(f"{key}[{at}]", word) for at, word in enumerate(value)]

    def one_of(self, key: str, value: Any, choices: tuple[str, ...]) -> str:
        if value not in choices:
            self.fail(key, value, " or ".join(choices))
        return str(value)


def _few(names: list[str]) -> str:
    rest = len(names) - 4
    return ", ".join(names[:4]) + (f" and {rest} more" if rest > 0 else "")
