"""Lines of output as they are compared: words as they are, integers exactly, others to 1e-6.

Figures of cost (times, dates, rates, memory) are taken out, since a faster setting changes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from autotune.targets.cost_words import heads_costs, names_cost, unit_of_cost
from runner.supervise.line_set import shape_name
from runner.types import RunRecord

TOLERANCE = 1e-6
"""Relative difference up to which two numbers that are no integers are equal."""
TINY = 1e-12
"""Absolute difference that rounding alone makes."""
TINY_RESIDUAL = 1e-9
"""The same for a residual or an error: it is what is left of larger numbers."""
DIGITS = 5
"""Number of digits from which the last printed digit may differ by one."""
COARSE = 2
"""Largest number of digits of a number in a table that is too coarse to be a result."""
COLUMNS = 3
"""Number of numbers from which a line counts as the row of a table."""
OF_ROUNDING = 10.0
"""Factor up to which two multiples of the rounding error (eps) are equal."""
_NUMBER = re.compile(
    r"(?<![\w.])[+-]?(?:\d+:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?![:\d])"
    r"|(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?)"
)
_INTEGER = re.compile(r"[+-]?\d+")
_RESIDUAL = re.compile(r"resid|error|\berr\b|norm|deviation|\bdiff|toleran|converge|accura", re.I)
_EPS = re.compile(r"(?<![a-z])eps(?:ilon)?(?![a-z])", re.I)
_PLACEHOLDER = "#"


@dataclass(frozen=True)
class PrintedNumber:
    """A number as it was printed."""

    text: str
    value: float
    integer: bool

    @property
    def digits(self) -> int:
        """The number of its significant digits."""
        mantissa = re.split("[eEdD]", self.text)[0]
        return len(mantissa.strip("+-").replace(".", "").lstrip("0"))

    @property
    def coarse(self) -> bool:
        """Whether it is no integer and has few digits, as the times in a table often have."""
        return not self.integer and self.digits <= COARSE

    @property
    def unit(self) -> float:
        """The value of one unit in its last digit."""
        mantissa, _, exponent = re.sub("[dD]", "e", self.text).lower().partition("e")
        places = len(mantissa.partition(".")[2])
        return float(10.0 ** (int(exponent or 0) - places))

    def equals(self, other: PrintedNumber, tiny: float, factor: float) -> bool:
        """Whether both are the same number but for rounding."""
        if self.integer and other.integer:
            return int(self.text) == int(other.text)
        a, b = self.value, other.value
        if a == b:  # Infinities, too.
            return True
        gap, size = abs(a - b), max(abs(a), abs(b))
        if gap <= TOLERANCE * size + tiny:
            return True
        if min(self.digits, other.digits) >= DIGITS and gap <= 1.5 * max(self.unit, other.unit):
            return True
        return factor > 1 and a * b > 0 and size <= factor * min(abs(a), abs(b))


@dataclass(frozen=True)
class PrintedLine:
    """A line: ``words`` with a mark for each of its ``numbers``.

    ``shape``: the name of its shape in the run's line set.
    """

    text: str
    words: str
    numbers: tuple[PrintedNumber, ...]
    shape: str
    exact: bool
    """Whether it has integers only, none of which is a figure of cost."""

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """The line without its numbers that are no integers: which of many alike it is."""
        return self.words, tuple(n.text if n.integer else "" for n in self.numbers)

    def equals(self, other: PrintedLine, unsteady: frozenset[int] = frozenset()) -> bool:
        """Whether both lines say the same; ``unsteady``: places of numbers that do not count."""
        if self.words != other.words or len(self.numbers) != len(other.numbers):
            return False
        tiny = TINY_RESIDUAL if _RESIDUAL.search(self.words) else TINY
        factor = OF_ROUNDING if _EPS.search(self.words) else 1.0
        pairs = zip(self.numbers, other.numbers, strict=True)
        row = len(self.numbers) >= COLUMNS
        return all(
            at in unsteady or (row and a.coarse and b.coarse) or a.equals(b, tiny, factor)
            for at, (a, b) in enumerate(pairs)
        )

    @property
    def coarse(self) -> bool:
        """Whether it is the row of a table whose figures with a decimal point are all coarse.

        Profiles have such rows, and leave out those that took too little time.
        """
        figures = [number for number in self.numbers if not number.integer]
        row = len(self.numbers) >= COLUMNS
        return row and bool(figures) and all(figure.coarse for figure in figures)

    @property
    def empty(self) -> bool:
        """Whether nothing of the line is compared."""
        return not self.numbers and not re.search(r"\w", self.words)


def printed_line(text: str, figure: float | None = None) -> PrintedLine:
    """A line of output, parsed; ``figure``: the run's own figure, which is one of cost."""
    plain = _parse(text, None)
    if figure is not None and any(_is_figure(number.text, figure) for number in plain.numbers):
        return _parse(text, figure)
    return plain


@lru_cache(maxsize=16384)
def _parse(text: str, figure: float | None) -> PrintedLine:
    words: list[str] = []
    numbers: list[PrintedNumber] = []
    at, cost, whole, exact = 0, False, False, True
    for match in _NUMBER.finditer(text):
        if match.start() < at:
            continue
        label = text[at : match.start()]
        whole = whole or (not words and heads_costs(label))
        if re.search(r"[^\W\d_]", label):
            cost = names_cost(label)
        words.append(label)
        at = match.end()
        unit = unit_of_cost(text[at:])
        if cost or whole or unit or ":" in match[0] or _is_figure(match[0], figure):
            at += len(unit)
            exact = False
            continue
        numbers.append(_number(match[0]))
        exact = exact and numbers[-1].integer
        words.append(_PLACEHOLDER)
    words.append(text[at:])
    plain_words = " ".join("".join(words).split())
    return PrintedLine(text, plain_words, tuple(numbers), shape_name(text), exact)


def _number(text: str) -> PrintedNumber:
    value = float(re.sub("[dD]", "e", text))
    return PrintedNumber(text, value, _INTEGER.fullmatch(text) is not None)


def _is_figure(text: str, figure: float | None) -> bool:
    if figure is None or ":" in text:
        return False
    return abs(_number(text).value - figure) <= TOLERANCE * abs(figure)


def lines_of(record: RunRecord) -> list[PrintedLine]:
    """The lines of a run of which something is compared."""
    texts = () if record.printed is None else record.printed.lines
    figure = record.metric_s
    if record.metric_rate and figure:
        figure = 1 / figure  # As it was printed.
    parsed_lines = (printed_line(text, figure) for text in texts)
    return [line for line in parsed_lines if not line.empty]


class LineIndex:
    """The lines of one run, to be found by what they say; ``long`` and ``cut`` as in the record."""

    def __init__(self, record: RunRecord) -> None:
        self.lines = lines_of(record)
        line_set = record.printed
        self.long = {} if line_set is None else line_set.long
        self.cut = line_set is not None and line_set.cut
        self._by_words: dict[str, list[PrintedLine]] = {}
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}
        self._texts = {line.text for line in self.lines}
        for line in self.lines:
            self._by_words.setdefault(line.words, []).append(line)
            self._places[line.place] = self._places.get(line.place, 0) + 1

    def holds(self, line: PrintedLine, unsteady: frozenset[int] = frozenset()) -> bool:
        """Whether a line of the run says the same but for the numbers at ``unsteady`` places."""
        if line.text in self._texts:
            return True
        return any(line.equals(other, unsteady) for other in self.alike(line))

    def alike(self, line: PrintedLine) -> list[PrintedLine]:
        """The lines with the same words."""
        return self._by_words.get(line.words, [])

    def changes(self, other: LineIndex) -> Iterator[tuple[str, int]]:
        """Words of lines, and the places of numbers in them, that differ in another run.

        A line of each run is compared with that of the other one with the same integers.
        """
        for line in self.lines:
            if not self.is_unique(line) or not other.is_unique(line) or line.text in other._texts:
                continue
            twin = next(one for one in other.alike(line) if one.place == line.place)
            for at, (a, b) in enumerate(zip(line.numbers, twin.numbers, strict=True)):
                if not a.equals(b, TINY, 1.0):
                    yield line.words, at

    def is_unique(self, line: PrintedLine) -> bool:
        """Whether exactly one line has the place of ``line``."""
        return self._places.get(line.place) == 1

    def whole(self, line: PrintedLine) -> bool:
        """Whether all lines of the shape of ``line`` are known."""
        return not self.cut and line.shape not in self.long
