"""Output without bound in bounded memory; patterns and JSON lines found anywhere in it."""

from __future__ import annotations

import itertools
import json
import random
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.process import read_proc
from runner.supervise import PatternMatch, Supervisor, output
from runner.supervise.output import Capture, LineScanner, MarkedLines, Tail, required_literal
from tests.runner.supervising import script

TIME = r"Time in seconds\s*=\s*([0-9.]+)"
FLOOD = """
import sys
line = b'iteration 17 residual 0.12345678 and some more words to fill the line\\n' * 20000
out = sys.stdout.buffer
for n in range(50):
    out.write(line)
    if n == 25: out.write(b' Time in seconds =   12.5\\n{"seconds": 12.5}\\n')
"""


def figures(found: PatternMatch) -> tuple[float | None, ...]:
    """Count, and the first, last, smallest, largest and total figure."""
    return (found.count, found.first, found.last, found.smallest, found.largest, found.total)


def scan(patterns: dict[str, str], chunks: list[bytes]) -> LineScanner:
    scanner = LineScanner(patterns)
    for chunk in chunks:
        scanner.add(chunk)
    scanner.close()
    return scanner


def test_flood_with_the_figure_in_the_middle() -> None:
    """70 MB; the supervisor's memory does not grow with it."""
    with Supervisor() as supervisor:
        result = supervisor.run(script(FLOOD, patterns={"metric": TIME}))
        status = read_proc(f"/proc/{supervisor.pid}/status").decode()
    assert result.output_bytes > 70_000_000
    found = result.matches["metric"]
    assert (found.count, found.text) == (1, "Time in seconds =   12.5")
    assert (found.first, found.last, found.total) == (12.5, 12.5, 12.5)
    assert (found.line, found.unit.kind) == (" Time in seconds =   12.5", "time")
    assert result.json_line == {"seconds": 12.5}
    assert len(result.stdout_head) == 16 * 1024
    assert len(result.stdout_tail) == 64 * 1024
    peak_kib = int(re.findall(r"VmHWM:\s+(\d+)", status)[0])
    assert peak_kib < 60_000


def test_both_streams_flooded_at_once_with_binary() -> None:
    text = (
        "import sys\nfor _ in range(30):\n"
        " sys.stdout.buffer.write(bytes(range(256)) * 2000)\n"
        " sys.stderr.buffer.write(bytes([0, 255]) * 200000)\n"
    )
    with Supervisor() as supervisor:
        result = supervisor.run(script(text, head_bytes=8, tail_bytes=4))
    assert result.exit_code == 0
    assert result.output_bytes == 30 * (512000 + 400000)
    assert result.stderr_tail == "\ufffd" * 2  # The NULs between them are left out.
    assert "\0" not in result.stdout_head


def test_last_line_needs_no_newline() -> None:
    scanner = scan({"m": TIME}, [b"Time in seconds = 1\nTime in sec", b"onds = 2"])
    assert figures(scanner.matches["m"]) == (2, 1.0, 2.0, 1.0, 2.0, 3.0)


def test_twice_on_one_line_counts_twice() -> None:
    found = scan({"m": "t=([0-9])"}, [b"t=1 t=2\n"]).matches["m"]
    assert figures(found) == (2, 1.0, 2.0, 1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("printed", "first", "largest", "total"),
    [
        (["0.46", "0.25"], 0.46, 0.46, 0.71),
        (["-2", "-1"], -2.0, -1.0, -3.0),
        (["1.5D-01", "2e-1"], 0.15, 0.2, 0.35),
        (["1m3s", "1:02:03"], 63.0, 3723.0, 3786.0),
        (["1", "nan", "3"], 1.0, None, None),
        (["inf", "3"], None, None, None),
        (["x", "3"], None, None, None),
    ],
)
def test_figures_of_several_occurrences(
    printed: list[str], first: float | None, largest: float | None, total: float | None
) -> None:
    data = "".join(f"t={text}\n" for text in printed).encode()
    found = scan({"m": r"t=(\S+)"}, [data]).matches["m"]
    assert (found.count, found.first, found.largest) == (len(printed), first, largest)
    assert found.total == (None if total is None else pytest.approx(total))


def test_patterns_do_not_reach_over_lines() -> None:
    assert scan({"m": r"value\s*=\s*(\d+)"}, [b"value =\n7\n"]).matches == {}


def test_carriage_returns_do_not_hide_the_end_of_a_line() -> None:
    assert scan({"a": r"done (\d)$", "b": r"^(d|D)one \d$"}, [b"done 1\r\n"]).matches.keys() == {
        "a",
        "b",
    }


def test_endless_line_is_cut_and_the_next_line_is_seen() -> None:
    chunks = [b"m=1 " + b"x" * 70_000, b"y" * 3_000_000, b"m=2\nm=3\n"]
    assert scan({"m": "m=([0-9])"}, chunks).matches["m"].text == "m=3"


def test_json_line_longer_than_patterns_see() -> None:
    line = json.dumps({"a": "x" * 500_000}).encode()
    cut = [line[i : i + 65536] for i in range(0, len(line), 65536)]
    found = scan({}, [*cut, b"\n{broken}\n[1]\n{} trailing\n"]).json_line
    assert found is not None
    assert len(found["a"]) == 500_000


def test_last_json_line_counts() -> None:
    text = b'{"a": 1}\n{"a": 2}\n {"a": 3}\n{"a": nonsense}\n'
    assert scan({}, [text]).json_line == {"a": 2}
    assert scan({}, [b"{}\n"]).json_line == {}
    assert scan({}, [b'{"a":' * 100_000 + b"}\n"]).json_line is None


@given(
    lines=st.lists(
        st.sampled_from(
            [b"", b"a=1", b"ba=22\r", b"{", b'{"k": 1}', b'{"k": 2}', b"\xff\x00", b"=="]
        ),
        max_size=30,
    ),
    ending=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_how_the_stream_is_cut_makes_no_difference(
    lines: list[bytes], ending: bool, cuts: list[int]
) -> None:
    data = b"\n".join(lines) + (b"\n" if ending else b"")
    places = sorted({min(c, len(data)) for c in cuts} | {0, len(data)})
    chunks = [data[a:b] for a, b in itertools.pairwise(places)]
    patterns = {"literal": r"a=(\d+)", "anchored": r"^(?:b?)a=\d+$", "none": "[=]{2}"}
    got = scan(patterns, chunks)
    expected: dict[str, list[re.Match[str]]] = {name: [] for name in patterns}
    for line in data.split(b"\n"):
        text = line.removesuffix(b"\r").decode("utf-8", "replace")
        for name, regex in patterns.items():
            expected[name] += re.finditer(regex, text)
    assert {n: (m.count, m.text, m.groups) for n, m in got.matches.items()} == {
        name: (len(found), found[-1].group(), found[-1].groups())
        for name, found in expected.items()
        if found
    }
    objects = [json.loads(x) for x in lines if x.startswith(b'{"')]
    assert got.json_line == (objects[-1] if objects else None)


@given(
    chunks=st.lists(st.binary(max_size=40), max_size=20),
    limit=st.integers(0, 30),
)
def test_tail_is_the_end(chunks: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    data = b"".join(chunks)
    expected = data[len(data) - min(limit, len(data)) :]
    assert tail.text() == expected.replace(b"\0", b"").decode("utf-8", "replace")


def test_head_is_the_beginning() -> None:
    capture = Capture({}, head_bytes=5, tail_bytes=0)
    for chunk in (b"abc", b"def", b"ghi"):
        capture.add_stdout(chunk)
        capture.add_stderr(chunk[::-1])
    assert capture.texts == {
        "stdout_head": "abcde",
        "stdout_tail": "",
        "stderr_head": "cbafe",
        "stderr_tail": "",
    }


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (TIME, "Time in seconds"),
        ("VERIFICATION SUCCESSFUL", "VERIFICATION SUCCESSFUL"),
        (r"\[done\] (\d+)", "[done] "),
        ("colou?r: (.*)", "colo"),
        ("(?i)time", None),
        ("OK|PASSED", None),
        ("a+b", None),
        ("abcd{0}", "abc"),
        (r"x\nyyy[)]zz", "x\nyyy)zz"),
        (r"Time\x20is: (\S+)", "Time is: "),
        (r"(?x) Time \x20 is", "Time is"),
        ("Time a|Time b", "Time "),
    ],
)
def test_required_literals(pattern: str, literal: str | None) -> None:
    assert required_literal(pattern) == literal


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("Verification = SUCCESSFUL", True),
        ("VERIFICATION SUCCESSFUL, run unsuccessful before", True),
        ("Verification = UNSUCCESSFUL", False),
        ("run was not successful", False),
        ("Non-successful", False),
        ("begin successful", True),
    ],
)
def test_a_negated_word_does_not_say_that_a_result_is_right(line: str, right: bool) -> None:
    scanner = scan({"verify": "(?i)successful", "other": "(?i)successful"}, [line.encode()])
    assert ("verify" in scanner.matches) == right
    assert "other" in scanner.matches


_ATOMS = r"a b ab abc \. . \w [ab] [^a] []a)] (ab) (?:a(b)c) (a|bc) (?=abc) (?!ab) (?P<n>abc)"
_MORE = r"^ $ \b (?#abc) \x61 \( -"
_REPEATS = ["", "", "", "*", "+", "?", "{0}", "{2}", "{0,1}", "*?", "++"]
_PIECE = st.tuples(
    st.sampled_from(_ATOMS.split() + _MORE.split()),
    st.sampled_from(_REPEATS),
)


@settings(max_examples=150)
@given(pieces=st.lists(_PIECE, min_size=1, max_size=6), text=st.text("abc.(-", max_size=12))
def test_every_match_contains_the_required_literal(
    pieces: list[tuple[str, str]], text: str
) -> None:
    pattern = "".join(atom + repeat for atom, repeat in pieces)
    try:
        regex = re.compile(pattern)
    except re.error:
        return
    literal = required_literal(pattern)
    match = regex.search(text)
    if match is not None and literal is not None:
        assert literal in text


def test_interpreter_is_the_one_under_test() -> None:
    """The server runs with the tuner's interpreter, without its site-packages."""
    with Supervisor() as supervisor:
        supervisor.start()
        words = read_proc(f"/proc/{supervisor.pid}/cmdline").split(b"\0")
    assert words[:3] == [sys.executable.encode(), b"-I", b"-S"]


def test_marked_lines_are_those_that_match() -> None:
    """The mark is a regular expression over whole lines, however they arrive."""
    found = MarkedLines(r"^\[[0-9]+\] |autotune-thread")
    text = b"[1] log\nown [1] words\nx autotune-thread 1\n[1] log\n[2"
    others = found.rest(text[:9]) + found.rest(text[9:])
    others += found.rest(b"] cut", at_end=True)
    assert others == b"own [1] words\n"
    assert found.lines == ("[1] log", "x autotune-thread 1", "[2] cut")


def test_without_a_mark_every_line_is_output() -> None:
    assert MarkedLines("").rest(b"[1] log") == b"[1] log"


def test_an_occurrence_that_cuts_a_number_is_shown() -> None:
    found = scan({"m": "t=([0-9.]+)"}, [b"t=1.5\nt=1,594\nt=2\n"]).matches["m"]
    assert (found.cut, found.total) == ("t=1,594", None)
    assert scan({"m": "t=([0-9.]+)"}, [b"t=1.5e+01\n"]).matches["m"].last == 15.0


def test_times_with_units_that_change_are_in_seconds() -> None:
    found = scan({"m": "time ([0-9.]+)"}, [b"time 950 ms\ntime 1.2 s\ntime 2 min\n"]).matches["m"]
    assert figures(found) == (3, 0.95, 120.0, 0.95, 120.0, pytest.approx(122.15))


@pytest.mark.parametrize(
    ("pattern", "value"), [(r"^4,8,(\d+)", 123.0), (r"^(\d+),8", 4.0), (r"^4,8,(\d+),", 123.0)]
)
def test_a_comma_in_the_pattern_separates(pattern: str, value: float) -> None:
    assert scan({"m": pattern}, [b"4,8,123,456\n"]).matches["m"].last == value


@pytest.mark.parametrize("seed", range(4))
def test_marked_lines_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever a program prints with the mark, in whatever pieces: no more than the bound."""
    monkeypatch.setattr(output, "MOST_MARK_BYTES", 100_000)
    source = random.Random(seed)
    kept = MarkedLines(r"^\[vm:\d+\] select: ")
    for number in range(400):
        length = source.choice((1, 10, 1000, 60_000, 200_000))
        data = b"[vm:1] select: component %d " % number + b"x" * length + b"\n"
        at = source.randrange(len(data))
        kept.rest(data[:at])
        kept.rest(data[at:])
    kept.rest(b"", at_end=True)
    assert 0 < sum(len(line.encode()) for line in kept.lines) <= 100_000
    assert len(set(kept.lines)) == len(kept.lines)


def test_a_marked_line_that_is_printed_again_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MOST_MARK_BYTES", 12)
    kept = MarkedLines("^mark")
    for _ in range(100):
        kept.rest(b"mark 1\n")
    kept.rest(b"mark 2\nmark 3\n")
    assert kept.lines == ("mark 1", "mark 2")


def test_a_match_without_a_group_has_its_line() -> None:
    """The reason of a run with words that must be absent shows it."""
    found = re.search("FAILED", "3 tests FAILED residual")
    assert found is not None
    match = PatternMatch.of(found)
    assert (match.line, match.column) == ("3 tests FAILED residual", 8)
