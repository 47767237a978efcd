"""What a running tuner takes for granted changes under it: the clock, the machine's name."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.store import Store
from tests.chaos.test_tuner import command, finished, stored

pytestmark = [pytest.mark.chaos, pytest.mark.mpi]
DAY_S = 86_400
TRIALS = 12


def begin(
    place: Path, mark: str, prefix: list[str], **environment: str
) -> tuple[subprocess.Popen[str], str]:
    """A tuner under ``prefix``, and its store; returns when it has measured something."""
    store = str(place / "r.db")
    tuner = subprocess.Popen(
        [*prefix, *command(place, mark, store, TRIALS)],
        cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"AUTOTUNE_LOCK_FILE": str(place / "lock")} | environment,
    )  # fmt: skip
    end = time.monotonic() + 60
    while finished(place) < 4 and tuner.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    assert tuner.poll() is None, tuner.communicate()
    return tuner, store


def ends_well(tuner: subprocess.Popen[str], place: Path, store: str) -> None:
    """All went well, and every run that the program saw is stored with a sane time."""
    _, err = tuner.communicate(timeout=300)
    assert tuner.returncode == 0, err
    assert "Traceback" not in err
    assert stored(store) == finished(place)
    with Store.open(store) as opened:
        (study,) = opened.studies()
        assert {t.state for t in opened.trials(study.id)} == {"ok"}
        assert all(0.05 < run.record.value_s < 30 for run in opened.runs(study.id))


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The library that makes the date jump."""
    library = tmp_path / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("days", [1, -1, -20 * 365])
def test_the_clock_jumps(
    tmp_path: Path, mark: str, days: int, clock: Path, fault: Callable[[str], None]
) -> None:
    """The date, not the clock that durations are taken from: what somebody sets by hand, or NTP."""
    fault("clock jumps")
    jump = tmp_path / "jump"
    jump.write_bytes(struct.pack("q", 0))
    tuner, store = begin(tmp_path, mark, [], LD_PRELOAD=str(clock), JUMP=str(jump))
    with jump.open("r+b") as file:  # in place: every process has it mapped
        file.write(struct.pack("q", days * DAY_S))
    ends_well(tuner, tmp_path, store)
    with Store.open(store) as opened:
        begun = [run.record.started_at for run in opened.runs(opened.studies()[0].id)]
    assert max(begun) - min(begun) > 0.9 * DAY_S, "the clock did not jump"


@pytest.mark.skipif(os.geteuid() != 0, reason="a machine is renamed by root only")
@pytest.mark.skipif(shutil.which("nsenter") is None, reason="nsenter is not installed")
def test_the_machine_gets_another_name(
    tmp_path: Path, mark: str, fault: Callable[[str], None]
) -> None:
    fault("host name changes")
    rename = ["hostname", "renamed"]
    if subprocess.run(["unshare", "--uts", *rename], check=False).returncode:
        pytest.skip("no name space of one's own here")
    tuner, store = begin(tmp_path, mark, ["unshare", "--uts"])
    enter = ["nsenter", "--uts", "--target", str(tuner.pid)]
    subprocess.run([*enter, *rename], check=True)
    ends_well(tuner, tmp_path, store)
    with Store.open(store) as opened:
        hosts = {run.record.host for run in opened.runs(opened.studies()[0].id)}
    assert "renamed" in hosts
