"""The nightly run itself: what is kept, what is run again, what the table says."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.nightly import __main__ as nightly
from tests.nightly import mpi_library, needs, table
from tests.nightly.parts import Part, all_parts
from tests.nightly.result import Result, Results, read_result

OPTIONS = argparse.Namespace(failed=False, limit=60.0)


def part(name: str, code: str, kind: str = "pytest") -> Part:
    return Part(name, "tests/a.py", kind, (sys.executable, "-c", code))


@pytest.mark.parametrize(
    ("kind", "code", "output", "counts"),
    [
        ("pytest", 0, "...\n3 passed, 2 skipped, 7 deselected in 0.10s", (5, 3, 0, 2)),
        ("pytest", 1, "==== 1 failed, 2 passed, 1 error in 75.20s (0:01:15) ====", (4, 2, 2, 0)),
        ("pytest", 0, "1 passed, 1 xfailed in 0.10s", (2, 2, 0, 0)),
        ("pytest", 5, "no tests ran in 0.01s", (1, 0, 1, 0)),
        ("pytest", 124, "ended: longer than 60 s", (1, 0, 1, 0)),
        ("pytest", 1, "3 passed in 0.10s", (4, 3, 1, 0)),
        ("fuzz", 0, "space      1000 tried    900 refused    0 crashes", (1000, 1000, 0, 0)),
        ("fuzz", 1, "space      1000 tried    900 refused    2 crashes", (1000, 998, 2, 0)),
        ("fuzz", 1, "Traceback (most recent call last)", (1, 0, 1, 0)),
        ("simulation", 0, "", (1, 1, 0, 0)),
        ("simulation", 1, "", (1, 0, 1, 0)),
    ],
)
def test_counts(kind: str, code: int, output: str, counts: tuple[int, ...]) -> None:
    found = read_result(part("a", "", kind), code, output, 1.0, "log")
    assert (found.tests, found.passed, found.failed, found.skipped) == counts


def test_a_finished_part_is_not_run_again_unless_the_code_changed(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    def noted(name: str, word: str, code: int) -> Part:
        note = f"open({str(ran)!r}, 'a').write({name!r})"
        return part(name, f"{note}; print('1 {word} in 0.1s'); raise SystemExit({code})")

    parts = [noted("1", "passed", 0), noted("2", "failed", 1)]
    first = nightly._run_all(parts[:1], Results(tmp_path / "state", "abc"), OPTIONS)
    assert [r.passed for r in first] == [1]
    both = nightly._run_all(parts, Results(tmp_path / "state", "abc"), OPTIONS)
    assert [(r.passed, r.failed) for r in both] == [(1, 0), (0, 1)]
    assert ran.read_text() == "12"
    again = argparse.Namespace(failed=True, limit=60.0)
    nightly._run_all(parts, Results(tmp_path / "state", "abc"), again)
    assert ran.read_text() == "122"
    nightly._run_all(parts, Results(tmp_path / "state", "def"), OPTIONS)
    assert ran.read_text() == "12212"


def test_a_part_that_was_killed_is_run_again(tmp_path: Path) -> None:
    results, one = Results(tmp_path, "abc"), part("one", "print('1 passed in 0.1s')")
    (tmp_path / "abc" / f"{one.slug}.json").write_text('{"name": "one", "row"')
    assert results.get(one) is None
    assert [r.passed for r in nightly._run_all([one], results, OPTIONS)] == [1]


def test_a_part_ends_at_its_limit_with_all_it_started(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(99)']"
    code = f"import subprocess, sys; subprocess.run({child})"
    limit = argparse.Namespace(failed=False, limit=0.5)
    (result,) = nightly._run_all([part("one", code)], Results(tmp_path, "abc"), limit)
    assert (result.passed, result.failed) == (0, 1)
    assert "ended: longer than" in Path(result.log).read_text()


def test_the_table_has_80_columns_and_a_sum() -> None:
    file = "slow tests/study/a_file_with_a_rather_long_name.py"
    results = [
        Result("slow a::x", file, 5, 3, 1, 1, 9.6, "l"),
        Result("slow a::y", file, 2, 2, 0, 0, 1.0, "l"),
        Result("fuzz b", "fuzzing", 100_000, 100_000, 0, 0, 12_345.0, "l"),
    ]
    plain = table.plain("nightly of commit abc; " + "machine " * 20, results).splitlines()
    assert max(map(len, plain)) <= 80
    assert plain[-3].split() == ["all", "100007", "100005", "1", "1", "12356"]
    assert plain[-2] == "failed: slow a::x"
    text = table.markdown("nightly", results)
    assert f"| {file} | 7 | 5 | 1 | 1 | 11 |" in text
    assert "Failed: `slow a::x`" in text


def test_the_parts_have_names_and_files_of_their_own() -> None:
    nodes = ["tests/chaos/test_a.py::test_x[1]", "tests/chaos/test_a.py::test_x[2]"]
    nodes += ["tests/b/test_b.py::test_y[1 %-40]", "tests/b/test_b.py::test_y[1 %-200]"]
    parts = all_parts(nodes)
    assert [p.name for p in parts[:3]] == [
        "chaos tests/chaos/test_a.py::test_x",
        "slow tests/b/test_b.py::test_y[1 %-40]",
        "slow tests/b/test_b.py::test_y[1 %-200]",
    ]
    assert parts[0].environment == {"AUTOTUNE_CHAOS_KILLS": "200"}
    assert len({p.slug for p in parts}) == len({p.name for p in parts}) == len(parts)


def test_each_mpi_library_is_a_part_and_its_version_is_told(tmp_path: Path) -> None:
    parts = [p for p in all_parts([]) if p.name.startswith("MPI libraries")]
    names = [p.name.split()[-1] for p in parts]
    assert {"openmpi-5", "openmpi-4.1.8", "openmpi-4.1", "mpich", "mpich-4"} <= set(names)
    assert all(p.environment == {"AUTOTUNE_TEST_MPIS": "all"} for p in parts)
    log = tmp_path / "log"
    log.write_text("library: mpich 5.0.2 in /opt/bin\n20 passed in 7.0s\n")
    assert mpi_library.version(log) == "library: mpich 5.0.2 in /opt/bin"
    log.write_text("")
    assert mpi_library.version(log) is None


def test_a_library_that_is_missing_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = mpi_library.classes()["TestMpich4"]
    monkeypatch.setattr(kind, "name", "mpich-999")
    assert mpi_library.said(kind).startswith("library: no mpich-999 on PATH: ")


def test_what_is_missing_comes_with_a_command() -> None:
    lacking = [
        needs.Need("a", lambda: False, apt=("x", "y")),
        needs.Need("b", lambda: False, pip=("z",)),
    ]
    assert needs.commands(lacking) == [
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "x", "y"],
        [sys.executable, "-m", "pip", "install", "z"],
    ]
    assert needs.commands([]) == []
