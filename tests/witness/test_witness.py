"""The witness itself: what it leaves out, what it sees, and how a record is continued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autotune.publish.formats import find
from autotune.publish.install import Text
from autotune.testing.format import rendered_text
from tests.case_table import case_table
from tests.revision import ROOT
from tests.witness import __main__ as witness
from tests.witness.faults import LIST, outcomes
from tests.witness.names import described
from tests.witness.plain import plain
from tests.witness.published import bare

PARTS = witness.PARTS[:2]


def test_what_differs_between_two_runs_is_left_out(tmp_path: Path) -> None:
    def document(date: str, ident: str, place: str, words: str) -> dict[str, Any]:
        return {"when": date, "study": ident, "file": f"{place}/a", "why": words, "code": "a.b"}

    one = document("2026-11-26 10:00:01 UTC", "ab12cd34", f"{tmp_path}/1", "it was too slow here")
    two = document("2026-11-27T09:59:59", "00ff00ff00ff", f"{tmp_path}/2", "this is another one")
    two["code"] = "c.d"
    assert plain(one, tmp_path / "1") == plain(two, tmp_path / "2")


@case_table(
    "change",
    [{"n": 2}, {"x": 1.00001}, {"flag": False}, {"line": "mpirun -n 2 --mca a 2 ./x"}, {"n": None}],
)
def test_other_data_is_seen(change: dict[str, Any]) -> None:
    same = {"n": 1, "x": 1.0, "flag": True, "line": "mpirun -n 2 --mca a 1 ./x"}
    assert plain(same | {"x": 1.0 + 1e-9}) == plain(same)
    assert plain(same | change) != plain(same)


def test_a_schema_is_the_same_in_another_form() -> None:
    inner = {"type": "string", "description": "a word"}
    one = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    two = one | {"properties": {"a": {"$ref": "#/$defs/word"}}, "$defs": {"word": inner}}
    assert [*described(one, one)] == [*described(two, two)]
    free = one | {"required": []}
    assert [*described(one, one)] != [*described(free, free)]


def test_an_edited_published_file_is_seen(tmp_path: Path) -> None:
    text = rendered_text(find("sh"), tmp_path / "f")
    lines = [*bare(text, tmp_path)]
    assert "checksum is right: True" in lines  # data
    for old, new in (("probe: seen", "probe: as it was seen"), ("'8192'", "'4096'")):
        assert [*bare(Text(text.main.replace(old, new)), tmp_path)] != lines


def test_the_outcome_of_each_test_is_told(tmp_path: Path) -> None:
    file = tmp_path / "test_own.py"
    file.write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pytest.skip('no')"
    )
    found = outcomes([f"{file}"], tmp_path / "report")
    assert found == ["test_a: passed", "test_b: failure", "test_c: skipped"]
    with pytest.raises(RuntimeError):
        outcomes([f"{tmp_path / 'test_gone.py'}"], tmp_path / "report")


def test_each_listed_test_is_there() -> None:
    listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    assert len(listed) >= 5
    assert [line for line in listed if not (ROOT / line.partition("::")[0]).is_file()] == []


def test_a_record_is_continued_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    codes = {part.name: 0 for part in PARTS} | {PARTS[1].name: 3}

    def run(part: witness.Part, out: Path, place: Path, limit: float) -> int:
        ran.append(part.name)
        (out / "file").write_text(f"{part.name}\n")
        (place / "log").write_text("")
        return codes[part.name]

    monkeypatch.setattr(witness, "_run", run)
    one, two = tmp_path / "one", tmp_path / "two"
    assert witness.record(one, "abc", PARTS, 60) == 1
    with pytest.raises(ValueError, match=PARTS[1].name):
        witness.compare([one, one], PARTS)
    codes[PARTS[1].name] = 0
    assert witness.record(one, "abc", PARTS, 60) == 0
    assert ran == [PARTS[0].name, PARTS[1].name, PARTS[1].name]
    with pytest.raises(ValueError, match="abc"):
        witness.record(one, "def", PARTS, 60)
    assert witness.record(two, "def", PARTS, 60) == 0
    assert witness.compare([one, two], PARTS) == 0
    (two / PARTS[0].name / "file").write_text("other\n")
    assert witness.compare([one, two], PARTS) == 1
    assert witness.compare([one, two], PARTS[1:]) == 0


def test_a_part_that_fails_says_why(tmp_path: Path) -> None:
    problem = witness._record(witness.Part("a", "nowhere", 1.0), tmp_path, 60.0)
    assert "nowhere" in problem
    assert list(tmp_path.iterdir()) == []
