"""What a study knows of the operations of its program, and what follows for settings."""

from __future__ import annotations

from typing import Any

from autotune.measurement.reduction_operations import (
    OPERATIONS,
    allows,
    first_kind,
    known_of,
    objection,
    operations_kind,
    remarks_on,
)
from autotune.measurement.run_history import DEFAULT_KEY, SEARCH, WARMUP, HistoryEntry, RunHistory
from autotune.space import Parameter, Setting, Space
from autotune.space.commutativity import for_any_operation
from autotune.study.objections import findings_on
from autotune.study.search_study import allowed_starts
from runner.types import RunRecord
from tests.case_table import case_table

RING = Setting({"coll_tuned_allreduce_algorithm": 4})
TREE = Setting({"coll_tuned_allreduce_algorithm": 3})
SPACE = Space("s", (Parameter("coll_tuned_allreduce_algorithm", (3, 4)),))


def history(*words: Any, phase: str = WARMUP) -> RunHistory:
    entries = [
        HistoryEntry(
            i, DEFAULT_KEY, phase, RunRecord("ok", extra={} if w is None else {OPERATIONS: w})
        )
        for i, w in enumerate(words)
    ]
    return RunHistory.of(entries)


@case_table(
    ("seen", "stated", "word"),
    [
        (True, False, "commute"),
        (True, True, "commute"),
        (False, False, "ordered"),
        (False, True, "ordered"),
        (None, True, "stated"),
        (None, False, "unknown"),
    ],
)
def test_what_is_seen_comes_before_what_is_said(seen: bool | None, stated: bool, word: str) -> None:
    assert known_of(seen, stated) == word


@case_table(
    ("words", "first", "all_"),
    [
        ((), None, "unknown"),
        ((None,), None, "unknown"),
        (("commute", "unknown"), "commute", "commute"),
        (("unknown", "commute"), "unknown", "unknown"),
        (("commute", "ordered"), "commute", "ordered"),
        (([1], "stated"), "stated", "stated"),
    ],
)
def test_one_run_with_such_an_operation_decides(
    words: tuple[Any, ...], first: str | None, all_: str
) -> None:
    assert first_kind(history(*words)) == first
    assert operations_kind(history(*words)) == all_


def test_only_warm_ups_count() -> None:
    assert first_kind(history("commute", phase=SEARCH)) is None


@case_table(
    ("word", "code"),
    [
        ("commute", None),
        ("stated", None),
        ("ordered", "operations.ordered"),
        ("unknown", "operations.unknown"),
        (None, "operations.unknown"),
    ],
)
def test_a_setting_that_may_be_wrong_is_not_recommended(word: str | None, code: str | None) -> None:
    told = history(word)
    note = objection(told, RING)
    assert (note and note.code) == code
    assert objection(told, TREE) is None
    stops = [(f.note.code, f.stops) for f in findings_on(told, RING)]
    assert ((code, True) in stops) is (code is not None)
    assert allows(first_kind(told)) is (code is None)


@case_table("word", ["stated", "ordered", "unknown"])
def test_the_answer_says_what_was_left_out_or_taken(word: str) -> None:
    (note,) = remarks_on(SPACE, history(word))
    assert note.code == f"operations.{word}"
    assert note.data == {"levels": {"coll_tuned_allreduce_algorithm": [4]}}


def test_nothing_is_said_where_nothing_follows() -> None:
    assert remarks_on(SPACE, history("commute")) == []
    assert remarks_on(SPACE, history()) == []
    assert remarks_on(Space("s", (Parameter("a", (1,)),)), history("ordered")) == []


def test_a_start_that_may_be_wrong_is_left_out_and_named() -> None:
    told: list[Any] = []
    left = for_any_operation(SPACE)
    assert allowed_starts([RING, TREE], SPACE, left, told.append) == [TREE]
    assert [(note.code, note.data) for note in told] == [
        ("operations.start", {"setting": RING.to_json()})
    ]
    assert allowed_starts([RING, TREE], SPACE, SPACE, told.append) == [RING, TREE]
    assert len(told) == 1
