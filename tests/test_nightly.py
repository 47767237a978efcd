"""The nightly run: what is kept, what runs again, what ends, what the table says."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import settings

from tests.nightly import PROPERTIES, Part, all_parts, run_all, skips, table

AT_IMPORT = settings()
"""What the properties of a file have that is imported when this one is."""


def part(name: str, code: str, alone: bool = False) -> Part:
    return Part(name, ("timeit", "-n", "1", "-r", "1", code), alone)


def test_a_part_runs_again_only_if_it_failed_or_the_code_changed(tmp_path: Path) -> None:
    ran, folder = tmp_path / "ran", tmp_path / "abc"
    note = f"import os; open({f'{ran}'!r}, 'a').write"
    parts = [
        part("1", f"{note}('1')"),
        part("2", f"{note}('2'); os.write(1, b' no '); os._exit(1)"),
    ]
    run_all(parts[:1], folder)
    results = run_all(parts, folder)
    cells = [row.strip("| ").split(" | ") for row in table(results).splitlines()[-2:]]
    untimed = [[name, state, last] for name, state, _, last in cells]
    assert untimed == [["2", "1 FAILED", "no"], ["all", "1 FAILED", "2 parts"]]
    assert run_all(parts, folder) == results
    assert ran.read_text() == "12"
    run_all(parts, folder, failed=True)
    run_all(parts[:1], tmp_path / "def")
    assert ran.read_text() == "1221"


def test_a_part_ends_at_its_limit_with_all_it_started(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    child = f"import os; os.system('setsid sh -c \"while :; do echo >> {file}; sleep 0.02; done\"')"
    assert run_all([part("1", child)], tmp_path, limit=1)["1"][0] == 124
    size = file.stat().st_size
    time.sleep(0.1)
    assert file.stat().st_size == size


def test_parts_of_chaos_are_the_last_and_nothing_runs_beside(tmp_path: Path) -> None:
    parts = all_parts(["tests/chaos/test_a.py", "tests/b/test_b.py"])
    assert len({one.log(tmp_path) for one in parts}) == len(parts)
    assert [one for one in parts if one.alone] == parts[-1:]
    here = f"{tmp_path}/here"
    code = f"import os, time; os.mkdir('{here}'); time.sleep(0.2); os.rmdir('{here}')"
    results = run_all([part(name, code, alone=True) for name in "ab"], tmp_path)
    assert [code for code, *_ in results.values()] == [0, 0]


def test_properties_have_the_same_examples_in_each_plain_run_and_others_at_night() -> None:
    (properties,) = [one for one in all_parts([]) if PROPERTIES in one.command]
    profile = properties.command[properties.command.index("--hypothesis-profile") + 1]
    assert not settings.get_profile(profile).derandomize
    assert AT_IMPORT.derandomize


def test_a_skip_says_how_to_get_what_is_missing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("SKIPPED [2] tests/a.py:1: no static C library\n3 passed\n")
    first = skips([log, log])[0]
    assert "no static C library" in first
    assert "libc6-dev" in first
