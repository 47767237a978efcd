"""The lines of output as a set: bounded, and the same however the output comes."""

from __future__ import annotations

import random

from runner.supervise.line_set import MOST_BYTES, MOST_LINES, OF_ONE_SHAPE, LineSet, shape_name
from runner.supervise.output import Capture
from runner.types import PrintedLines


def lines_in(output: bytes) -> PrintedLines:
    found = LineSet()
    found.add(output)
    return found.printed_lines()


def captured(*chunks: bytes) -> PrintedLines:
    capture = Capture({}, 100, 1000)
    for chunk in chunks:
        capture.add_stdout(chunk)
    capture.close()
    return capture.printed_lines


def test_different_lines_are_kept_once_without_blanks_at_the_end() -> None:
    output = b"a 1\nb\na 1\n\n  \nb  \r\n17\nwithout end"
    assert captured(output) == PrintedLines(("a 1", "b", "17", "without end"))


def test_the_cut_into_chunks_does_not_matter() -> None:
    output = b"".join(b"step %d energy %d.5\nkey %d\n\n" % (n, n, n) for n in range(300))
    whole = captured(output)
    for size in (1, 7, 1000):
        parts = [output[at : at + size] for at in range(0, len(output), size)]
        assert captured(*parts) == whole


def test_a_long_shape_of_integers_is_summed_in_any_order() -> None:
    first = [b"key %d" % n for n in range(OF_ONE_SHAPE)]
    rest = [b"key %d" % n for n in range(OF_ONE_SHAPE, 3000)]
    one = lines_in(b"\n".join(first + rest))
    random.Random(1).shuffle(rest)
    assert lines_in(b"\n".join(first + rest)) == one
    assert len(one.lines) == OF_ONE_SHAPE
    # Written down: other processes and versions have to sum to the same.
    assert one.long == {shape_name("key 7"): "2936:59af8de3196"}
    rest[17] = b"key 999999"
    assert lines_in(b"\n".join(first + rest)).long != one.long


def test_a_long_shape_with_other_numbers_is_not_summed() -> None:
    found = lines_in(b"\n".join(b"step %d energy %d.25" % (n, n) for n in range(1000)))
    assert found.long == {shape_name("step 0 energy 0.25"): ""}


def test_the_last_lines_of_a_long_shape_are_kept() -> None:
    found = captured(b"".join(b"step %d energy 1.5\n" % n for n in range(5000)))
    assert "step 4999 energy 1.5" in found.lines
    assert len(found.lines) <= 2 * OF_ONE_SHAPE


def test_a_line_of_its_own_is_kept_wherever_it_stands() -> None:
    flood = b"step 1 energy 1.5\n" * 100 + b"".join(b"step %d energy 2.5\n" % n for n in range(999))
    found = lines_in(flood * 30 + b"wrong products: 7\n" + flood * 30)
    assert "wrong products: 7" in found.lines  # data


def test_memory_is_bounded() -> None:
    letters = random.Random(1)
    words = ["".join(letters.choices("abcdefghij", k=200)) for _ in range(5000)]
    found = lines_in("\n".join(words).encode())
    assert found.cut
    assert len(found.lines) <= MOST_LINES
    assert sum(map(len, found.lines)) <= MOST_BYTES + 200


def test_each_value_of_the_last_json_line_is_a_line() -> None:
    found = captured(b'{"old": 1}\nhello\n{"seconds": 1.5, "sums": [2, 3], "of": {"x": true}}\n')
    assert found.lines == ("hello", "seconds = 1.5", "sums = 2", "sums = 3", "of.x = True")
