"""The planting of defects: the same list from a seed, and changes that compile and differ."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.common import ROOT
from benchmarks.planted_defects import AREAS, Defect, draw, planted, suites_of


@pytest.fixture(scope="module")
def defects() -> list[Defect]:
    return draw(7)


def test_a_seed_draws_the_same_defects_of_every_area(defects: list[Defect]) -> None:
    first = defects
    assert first == draw(7)
    assert first != draw(8)
    assert Counter(one.area for one in first) == {name: many for name, (many, _) in AREAS.items()}
    assert sum(many for many, _ in AREAS.values()) == 60


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_a_defect_compiles_and_is_found_again_where_its_file_went(
    defects: list[Defect], number: int, tmp_path: Path
) -> None:
    defect = defects[number]
    source = tmp_path / "autotune" / "elsewhere.py"
    source.parent.mkdir()
    (tmp_path / "runner").mkdir()
    shutil.copy(ROOT / defect.file, source)
    before = source.read_text()
    assert planted(defect, tmp_path) == "autotune/elsewhere.py"
    after = source.read_text()
    compile(after, "x", "exec")
    differing = [a for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert differing == [defect.line]
    source.write_text(after)
    with pytest.raises(LookupError):
        planted(defect, tmp_path)


def test_the_tests_of_a_module_are_those_of_its_package_and_of_its_users() -> None:
    own, users = suites_of("autotune/stats/sequential.py", ROOT)
    assert own == ["tests/stats"]
    assert users
    assert not any(name.startswith("tests/stats/") for name in users)
    assert suites_of("runner/guard.py", ROOT)[0] == ["tests/runner"]
