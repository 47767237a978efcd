"""Numbers of which a pattern matches a part: read whole, or refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.figure.number import CutNumber, number_at, number_of
from tests.case_table import case_table

CUTTING = r"([0-9.]+)"


def read(line: str, pattern: str = CUTTING) -> float | None:
    match = re.search(pattern, line)
    assert match is not None
    separator = "," if ",(" in pattern or ")," in pattern else ""
    number = number_at(line, *match.span(1), separator)
    return None if number is None else number.value


@case_table(
    ("line", "value"),
    [
        (" Total time =  9.800E+00", 9.8),
        (" Total time =  1.030E+01", 10.3),
        ("Elapsed time         =    2.1e+02 (s)", 210.0),
        ("   regular host allocation:   .520D-05", 0.52e-5),
        (" wall clock  0.1234-100", 0.1234e-100),
        (" time 9.D+00", 9.0),
        ("Total run time: 1,594.3 s", 1594.3),
        ("| elapsed |  1,234,567s |", 1_234_567.0),
        ("time 1'594.3", 1594.3),
        ("time 1_000", 1000.0),
        ("real\t1m23.45s", 83.45),
        ("took 2 h 5 min 3 s", 7503.0),
        ("took 2 hours, 5 minutes and 3.5 seconds", 7503.5),
        ("up 1 day, 2 hours", 93_600.0),
        ("Total wall time: 5:00:32", 18_032.0),
        ("Elapsed 00:02.304", 2.304),
        ("Elapsed 1-02:03:04", 93_784.0),
        ("Elapsed (mm:ss) 5:32", 332.0),
        ("Elapsed (hh:mm) 5:32", 19_920.0),
        ("took 9.8.", 9.8),
        ("time 12.3s", 12.3),
        ("avg 5 min 3 max 8", 5.0),
        ("4,8,0.52,1.3", 4.0),
        ("0.523,1000", 0.523),
        ("5.13 s  ClockTime = 17 s", 5.13),
        ("time = -9.8", -9.8),
    ],
)
def test_the_whole_number(line: str, value: float) -> None:
    assert read(line) == pytest.approx(value)


@case_table(
    "text",
    ["1,594", "12,52", "1.594,3", "5:32", "01:02", "1.2.3", "1.5 x 10^3", "1.5*10**3", "5:3:2.1.1"],
)
def test_what_is_not_certain_is_refused(text: str) -> None:
    with pytest.raises(CutNumber):
        read(f"time {text}")
    assert number_of(text) is None


@case_table(
    ("line", "pattern", "value"),
    [
        ("time 1,594.3", r"([0-9]+\.[0-9]+)", 1594.3),
        ("time 1m23.45s", r"([0-9]+\.[0-9]+)", 83.45),
        ("time 1.5E-03", r"E-([0-9]+)", 1.5e-3),
        ("4,8,123.4,2", r"8,([0-9.]+),", 123.4),
        ("8,123.4", r"8,([0-9.]+)", 123.4),
        ("rank 3:12.34", r"[0-9]+:([0-9.]+)", 12.34),
        ("node12:0.52", r"[0-9]+:([0-9.]+)", 0.52),
        ("time = 12.3s,", r"= (\S+)", 12.3),
        ("rating of=16.3GFLOP/s", r"of=(\S+)", 16.3),
        ("time (12.3)", r"time (\S+)", 12.3),
    ],
)
def test_patterns_that_begin_or_end_elsewhere(line: str, pattern: str, value: float) -> None:
    assert read(line, pattern) == pytest.approx(value)


@case_table("text", ["nan", "inf", "******", "x12", "-"])
def test_no_number(text: str) -> None:
    assert read(f"time = {text}", r"= (\S+)") is None


def test_two_numbers_in_one_group() -> None:
    with pytest.raises(CutNumber):
        read("0.5,0.7", r"(\S+)")


@case_table("line", ["end time Wed Nov 15 01:09:14 2023", "2023-11-15 01:09:14", "at 01:09:14 PM"])
def test_the_time_of_day_is_no_duration(line: str) -> None:
    with pytest.raises(CutNumber):
        read(line, r" ([0-9]+):")


@given(
    value=st.floats(1e-12, 1e12),
    form=st.sampled_from(["{:.3f}", "{:.6e}", "{:.6E}", "{:g}", "{:r}", "{:,.2f}", "D"]),
    before=st.sampled_from(["time = ", "t=", "(", "| ", "Elapsed:", "\t"]),
    behind=st.sampled_from(["", " s", "s", ")", " |", ".", ";", ", 7 ranks", " on 2 procs"]),
    cut=st.integers(1, 4),
)
def test_any_part_reads_the_whole(
    value: float, form: str, before: str, behind: str, cut: int
) -> None:
    """Whatever part of a number a group holds, the whole number is read."""
    if form == "D":
        text = f"{value:.6e}".replace("e", "D")
    else:
        text = repr(value) if form == "{:r}" else form.format(value)
    expected = float(text.replace(",", "").replace("D", "e"))
    line = f"{before}{text}{behind}"
    start = line.index(text)
    for first, last in ((start, start + cut), (start, start + len(text))):
        if not re.search(r"\d", line[first:last]):
            continue
        number = number_at(line, first, min(last, start + len(text)))
        assert number is not None
        assert number.value == expected


@given(st.text("0123456789.,:'_eEdD+-hms x*^/\u00d7", max_size=200), st.data())
def test_any_text_is_read_or_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    try:
        number = number_at(text, start, end)
    except CutNumber:
        return
    assert number is None or (number.value == number.value and number.start < end)


@pytest.mark.parametrize("text", ["1" * 200, "0." + "3" * 100])
def test_a_number_longer_than_any(text: str) -> None:
    with pytest.raises(CutNumber):
        number_at(text, 0, 3)
