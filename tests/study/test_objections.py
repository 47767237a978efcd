"""Objections to settings that won their proof: what stops, what is a note, what the answer says."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.measurement.run_history import RunHistory
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.stats import slow_launches
from autotune.study import objections as module
from autotune.study.conclusion import contradictions, judge_status
from autotune.study.fresh_pairs import slow_findings
from autotune.study.objections import Finding, findings_on, objections, remarks

STOP = Finding(Note("test.stop", "stop", {"n": 1}), stops=True)
NOTE = Finding(Note("test.note", "note"), stops=False)


def test_all_checks_are_asked_and_their_findings_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def check(history: RunHistory, setting: Setting, reference: Setting) -> list[Finding]:
        seen.append((setting, reference))
        return [STOP, NOTE]

    monkeypatch.setattr(module, "CHECKS", (check, check))
    one = Setting({"a": 1})
    findings = findings_on(RunHistory(), one)
    assert seen == [(one, DEFAULT)] * 2
    assert objections(findings) == [STOP.note] * 2
    assert remarks(findings) == [NOTE.note] * 2


def test_only_more_frequent_slow_launches_are_an_objection() -> None:
    more = slow_findings(slow_launches(20, 60, 0, 60, alpha=0.05))
    assert [(f.note.code, f.stops) for f in more] == [("result.slow_launches", True)]
    assert more[0].note.data["slow"] == 20
    assert slow_findings(slow_launches(0, 60, 20, 60, alpha=0.05)) == []
    assert slow_findings(slow_launches(1, 60, 1, 60, alpha=0.05)) == []


def test_a_contradicted_study_names_setting_and_code() -> None:
    one = Setting({"a": 1})
    made: Any = type("Made", (), {"setting": one, "objections": [STOP.note], "findings": (STOP,)})
    answer: Any = type("Answer", (), {"with_objections": [made], "setting": None, "proof": None})
    assert judge_status(answer, RunHistory()) == "contradicted"
    assert judge_status(answer, RunHistory(), has_guard=False) == "unguarded"
    (note,) = contradictions(answer)
    assert (note.code, note.data) == ("test.stop", {"n": 1, "setting": {"a": 1}})
    assert Note.from_json(note.to_json()) == note
