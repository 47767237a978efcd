"""Programs that the user brings: where they are looked for, and what is read from their output.

The programs themselves are not here: stand-ins print what they print (:mod:`stand_in`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import App, load_app
from autotune.config.app_program import fill
from autotune.config.find import list_configs
from autotune.errors import UsageError
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.micro.brought import main
from tests.apps.conftest import Launch
from tests.case_table import case_table
from tests.micro import stand_in
from tests.micro.stand_in import write
from tests.refusals import refusal, refused

VARIABLES = {"npb": "NPB_BIN", "osu": "OSU_BIN", "imb": "IMB_BIN", "hpcg": "HPCG_BIN"}
BROUGHT = [f.name for f in list_configs("apps") if f.name.split("-")[0] in VARIABLES]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all four variables point."""
    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, str(tmp_path))
    return tmp_path


def result(app: App, input_name: str, ranks: int = 2) -> tuple[int, dict[str, object]]:
    """Exit code and JSON line ({} if none) of the app's own command, without a launcher."""
    done = subprocess.run(
        app.program(input_name, ranks), capture_output=True, text=True, timeout=30, check=False
    )
    last = done.stdout.splitlines()[-1] if done.stdout.strip() else ""
    return done.returncode, json.loads(last) if last.startswith("{") else {}


def test_all_eight_and_the_three_others_are_there() -> None:
    kernels = {f"npb-{k}" for k in ("is", "ep", "cg", "mg", "ft", "lu", "bt", "sp")}
    assert set(BROUGHT) == kernels | {"osu", "imb", "hpcg"}


@case_table("name", BROUGHT)
def test_without_its_variable_one_message_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = VARIABLES[name.split("-")[0]]
    monkeypatch.delenv(variable, raising=False)
    app = load_app(name)
    with refused(UsageError, "app.variable_unset") as error:
        app.program(None, 2)
    assert f"export {variable}=" in str(error.value)
    assert app.howto in str(error.value)


@case_table("name", BROUGHT)
def test_a_missing_program_is_listed_with_all_its_places(name: str, place: Path) -> None:
    app = load_app(name)
    with refused(UsageError, "program.not_found") as error:
        app.program(None, 2)
    assert str(error.value).count(f"\n  {place}") == len(app.files)


def test_a_file_that_may_not_be_run(place: Path) -> None:
    (place / "cg.A.x").write_text("")
    with refused(UsageError, "program.not_executable"):
        load_app("npb-cg").program("A", 2)


def test_a_program_keeps_the_files_that_its_rank_has_open() -> None:
    """Hydra gives a rank such a file, by which it starts."""
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    script = f"echo open > /dev/fd/{write_end}; echo 7.5"
    assert main(["--figure", "(7.5)", "--us-of", "1", "--", "sh", "-c", script]) == 0
    assert os.read(read_end, 9) == b"open\n"
    os.close(read_end)
    os.close(write_end)


def test_a_placeholder_that_means_nothing() -> None:
    with refused(UsageError, "app.placeholder_unknown"):
        fill("{size}", {"input": "A"}, "mine")


def test_npb_is_found_under_both_names(place: Path) -> None:
    app = load_app("npb-cg")
    old = write(place / "cg.W.4", "")
    assert app.program("W", 4) == (str(old),)
    with pytest.raises(UsageError, match=r"cg\.W\.2"):
        app.program("W", 2)
    new = write(place / "cg.W.x", "")
    assert app.program("W", 4) == (str(new),)


def test_patterns_of_npb() -> None:
    app = load_app("npb-ft")
    assert app.metric
    assert app.verify
    found = re.search(app.metric, stand_in.NPB, re.MULTILINE)
    assert found is not None
    assert found[1] == "19.07"
    assert re.search(app.verify, stand_in.NPB, re.MULTILINE)
    for wrong in ("            UNSUCCESSFUL", "           NOT PERFORMED"):
        text = stand_in.NPB.replace("              SUCCESSFUL", wrong)
        assert text != stand_in.NPB
        assert not re.search(app.verify, text, re.MULTILINE)


@pytest.mark.parametrize("folder", ["", "pt2pt", "pt2pt/standard"])
def test_osu_latency_in_every_layout(place: Path, folder: str) -> None:
    write(place / folder / "osu_latency", stand_in.OSU.format(test="Latency", size=4096))
    code, got = result(load_app("osu"), "latency-4k")
    assert code == 0
    # 100000 round trips are 200000 latencies of 12.34 us.
    assert got == {"figure": 12.34, "seconds": pytest.approx(2.468), "verified": True}


@pytest.mark.parametrize(
    ("input_name", "program", "text", "seconds"),
    [
        ("allreduce-1m", "osu_allreduce", stand_in.OSU_5.format(size=1048576), 36.66e-6 * 200),
        ("barrier", "osu_barrier", stand_in.BARRIER, 1.5e-6 * 50000),
        # 500 windows of 64 messages of 65536 bytes at 12.34 MB/s, and twice that both ways.
        ("bw-64k", "osu_bw", stand_in.OSU.format(test="Bandwidth", size=65536), 169.94671),
        ("bibw-64k", "osu_bibw", stand_in.OSU.format(test="Bi", size=65536), 339.89342),
    ],
)
def test_osu_figures_become_seconds(
    place: Path, input_name: str, program: str, text: str, seconds: float
) -> None:
    write(place / program, text)
    code, got = result(load_app("osu"), input_name)
    assert code == 0
    assert got["seconds"] == pytest.approx(seconds, rel=1e-5)


def test_a_failed_validation_of_osu_is_not_verified(place: Path) -> None:
    write(place / "osu_allreduce", stand_in.BAD_OSU)
    assert result(load_app("osu"), "allreduce-1k")[1]["verified"] is False


@pytest.mark.parametrize(
    ("input_name", "text", "seconds"),
    [
        ("PingPong-4k", stand_in.PINGPONG, 2.00e-6 * 50000),
        ("Sendrecv-64k", stand_in.SENDRECV, 6.03e-6 * 10000),
        ("Allreduce-1m", stand_in.ALLREDUCE, 373427.99e-6 * 1000),
    ],
)
def test_imb_takes_the_average_of_the_size_asked_for(
    place: Path, input_name: str, text: str, seconds: float
) -> None:
    write(place / "IMB-MPI1", text)
    assert result(load_app("imb"), input_name)[1]["seconds"] == pytest.approx(seconds)


def test_hpcg_is_read_from_its_file_and_leaves_none(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "xhpcg", stand_in.HPCG, "HPCG-Benchmark_3.1_2026-01-01_00-00-00.txt")
    here = place / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, got = result(load_app("hpcg"), "16")
    assert (code, got) == (0, {"figure": 8.0, "seconds": 0.125, "verified": True})
    assert list(here.iterdir()) == []


def test_an_invalid_hpcg_gives_no_figure(place: Path) -> None:
    write(place / "xhpcg", stand_in.BAD_HPCG, "HPCG-Benchmark_3.1.txt")
    assert result(load_app("hpcg"), "16") == (0, {})


def test_the_exit_code_of_the_program_is_passed_on(place: Path) -> None:
    write(place / "osu_barrier", stand_in.BARRIER, code=3)
    assert result(load_app("osu"), "barrier") == (3, {})


def test_every_input_is_complete(place: Path) -> None:
    """No placeholder without a value, and a pattern with one group for each."""
    for name in BROUGHT:
        app = load_app(name)
        for key in app.inputs:
            for file in app.files:
                path = fill(file, {**app.inputs[key].values, "input": key, "ranks": "4"}, name)
                if not Path(path).is_dir():
                    write(Path(path), "")
            words = app.program(key, 4)
            if "--figure" in words:
                assert re.compile(words[words.index("--figure") + 1]).groups == 1


def test_wrong_use(snapshot: SnapshotAssertion) -> None:
    lines = [
        "--figure (x) --us-of 1",
        "--figure (x) -- true",
        "--figure x --us-of 1 -- true",
        "--figure ( --us-of 1 -- true",
        "--figure (x) --rate-of 0 -- true",
    ]
    assert {line: refusal(AppUsageError, main, line.split()) for line in lines} == snapshot


def test_a_pattern_that_finds_words() -> None:
    with refused(AppUsageError, "micro.figure"):
        main(["--figure", r"^(\w+)$", "--us-of", "1", "--", "echo", "hello"])


@pytest.mark.mpi
def test_only_the_rank_that_prints_the_figure_adds_the_line(launch: Launch, tmp_path: Path) -> None:
    program = write(tmp_path / "osu_barrier", stand_in.BARRIER, mpi=True)
    words = ["--figure", r"^\s*(\d+\.\d+)\s*$", "--us-of", "1000", "--", str(program)]
    done = launch(2, "-m", "runner.programs.micro.brought", *words)
    assert done.code == 0, done.err
    assert done.out.count('"seconds"') == 1
    assert done.result["seconds"] == pytest.approx(0.0015)


def test_a_given_file_lies_in_a_directory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    given = tmp_path / "in" / "input.txt"
    given.write_text("time 2.5\n")
    words = ["--figure", r"^time (\S+)$", "--us-of", "1000000", "--given", str(given)]
    assert main([*words, "--", "sh", "-c", "cat input.txt; touch made"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["seconds"] == 2.5
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in given.parent.iterdir()] == ["input.txt"]


def test_a_given_file_that_is_not_there(tmp_path: Path) -> None:
    words = ["--figure", "(x)", "--us-of", "1", "--given", str(tmp_path / "none"), "--", "true"]
    with pytest.raises(FileNotFoundError, match="none"):
        main(words)
