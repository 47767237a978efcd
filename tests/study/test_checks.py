"""Which answers are marked as unchecked, and what is said of the checks of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import App, app_from_command
from autotune.measurement import result_checks as module
from autotune.measurement.output_check import result_checks, verification
from autotune.measurement.result_checks import StoredAnswer, checks_words, shown_lines, unchecked
from autotune.measurement.run_history import CONFIRM, HistoryEntry, RunHistory
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.store import Store
from runner.types import PrintedLines, RunRecord
from tests.case_table import case_table
from tests.contract.store_samples import APP, key

ONE = Setting({"a": 1})
PLAIN = App(name="x", command=("x",))


def answer(verify: str | None) -> StoredAnswer:
    return StoredAnswer(None, verify, "openmpi", "5.0.11", {"a": 1})


def test_an_answer_that_nobody_verified_is_unchecked() -> None:
    assert [note.code for note in unchecked(answer(None))] == ["result.unchecked"]
    assert unchecked(answer("ok")) == []
    assert unchecked(None) == []


def test_further_reasons_mark_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(one: StoredAnswer) -> Note | None:
        return Note("test.level", "why") if one.setting == {"a": 1} else None

    monkeypatch.setattr(module, "REASONS", (*module.REASONS, reason))
    assert [note.code for note in unchecked(answer("ok"))] == ["test.level"]


def test_stored_answers_are_told_from_the_database(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        plain = APP.__class__("x", "/x", "ab" * 32, (), None, None, None)
        for app in (APP, plain):
            study = store.study(key(app=app, conditions={"clean_env": False}))
            assert unchecked(StoredAnswer.of_study(study)) == []  # It has no answer yet.
            result = {"recommended": {"setting": {"a": 1}}}
            store.set_result(study.id, "recommended", result)
        listed = {line.app: unchecked(StoredAnswer.of_summary(line)) for line in store.studies()}
        assert {name: len(found) for name, found in listed.items()} == {"jacobi3d": 0, "x": 1}
        rows = [StoredAnswer.of_study(store.get_study(line.id)) for line in store.studies()]
        assert {row.verify for row in rows if row} == {"ok", None}
        assert [StoredAnswer.of_summary(line) for line in store.studies()] == rows


@case_table(
    ("terms", "codes"),
    [
        ({}, ["operations.not_seen"]),
        ({"operations": "seen"}, []),
        ({"commutative_only": True}, []),
        (None, []),
    ],
)
def test_an_answer_with_a_level_that_nobody_looked_after_is_marked(
    terms: dict[str, object] | None, codes: list[str]
) -> None:
    setting = {"coll_tuned_allreduce_algorithm": "ring"}
    one = StoredAnswer(None, "ok", "openmpi", "5.0.11", setting, terms)
    assert [note.code for note in unchecked(one)] == codes


def test_who_verifies() -> None:
    assert verification(PLAIN) is None
    assert verification(PLAIN.model_copy(update={"verify": "ok"})) == "application"
    assert verification(app_from_command(("sh",), None, "ok")) == "pattern"
    assert verification(app_from_command(("sh",), None, "json:ok")) == "json"


def history(**changes: object) -> RunHistory:
    found = RunHistory()
    for n in range(3):
        for name in ("default", ONE.key):
            record = RunRecord("ok", wall_s=1.0, **changes)  # type: ignore[arg-type]
            found.add(HistoryEntry(found.next_order, name, CONFIRM, record, block=n))
    return found


def test_what_was_checked_is_one_line(snapshot: SnapshotAssertion) -> None:
    printed = PrintedLines(("sum 1", "result RIGHT"))
    app = PLAIN.model_copy(update={"verify": "ok"})
    texts = []
    for app_, runs, setting in (
        (PLAIN, history(), ONE),
        (PLAIN, history(printed=printed), ONE),
        (PLAIN, history(printed=printed), DEFAULT),
        (app, history(printed=printed, verified=True), ONE),
        (app, history(verified=True), DEFAULT),
    ):
        checks = result_checks(app_, runs, setting)
        texts.append(checks_words(checks))
        assert checks["verified"] == (None if app_ is PLAIN else "application")
        assert checks["verified_runs"] == (0 if app_ is PLAIN else checks["runs"])
        assert (checks["output"] is None) == (setting == DEFAULT)
    assert texts == snapshot
    assert all(len(text) <= 79 for text in texts)


def test_only_notes_on_lines_show_lines() -> None:
    shown = [{"reference": "a", "setting": ""}, {"reference": "b", "setting": "c"}]
    assert shown_lines(Note("x.y", "", {"shown": shown})) == ["  - a", "  - b", "  + c"]
    assert shown_lines(Note("x.y", "", {"n": 1})) == []
