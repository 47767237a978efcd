"""What a user names may have no end, and what lies beside a file may be larger than the memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.api.workers import LOG_BYTES, _lines
from autotune.errors import AutotuneError
from autotune.prediction.model_file import load_model
from autotune.publish.install import BACKUP, SIDE
from autotune.publish.published_files import published, record_path
from autotune.publish.undo import remove
from autotune.targets.setting_syntax import read_setting_file
from runner.errors import RunnerError
from runner.files import read_tail, read_user_file
from runner.mpi.openmpi.parameters import read_parameter_file
from runner.runtimes.mate.config import read_rank_map
from runner.runtimes.mate.errors import ConfigError
from runner.trace.document import load_features
from tests.publish.test_install import publish

ENDLESS = Path("/dev/zero")
NAMED = (read_setting_file, load_model, load_features, read_rank_map)
"""Readers of a file that a user names."""


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    """No more than 2 GiB beyond what is there: a reader without a bound fails, not the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (2 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def sparse(path: Path) -> Path:
    """A file of 8 GiB that takes no disk."""
    path.touch()
    os.truncate(path, 8 << 30)
    return path


@pytest.mark.parametrize("read", NAMED)
@pytest.mark.parametrize("large", [False, True])
def test_a_named_file_without_end_is_refused(
    tmp_path: Path, read: Callable[[Path], object], large: bool
) -> None:
    path = sparse(tmp_path / "x") if large else ENDLESS
    with pytest.raises((AutotuneError, RunnerError, ConfigError)):
        read(path)


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b'{"a": 1}')
    os.close(write)
    assert read_setting_file(Path(f"/dev/fd/{read}")) == {"a": 1}
    os.close(read)
    with pytest.raises(OSError):
        read_user_file(ENDLESS, 100)


@pytest.mark.parametrize("beside", [SIDE, BACKUP])
def test_what_lies_beside_a_published_file_is_bounded(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "mca-params.conf"
    path.write_text("# own\n", encoding="utf-8")
    publish(path)
    sparse(path.with_name(path.name + beside))
    with pytest.raises(AutotuneError):
        remove(path)
    assert path.exists()


def test_own_records_are_bounded(own_home: Path) -> None:
    record_path().parent.mkdir(parents=True, exist_ok=True)
    sparse(record_path())
    with pytest.raises(AutotuneError):
        published()


def test_of_a_log_the_end_is_read(tmp_path: Path) -> None:
    log = sparse(tmp_path / "worker.log")
    with log.open("ab") as file:
        file.write(b"\nthe last line\n")
    assert len(read_tail(log, 100)) == 100
    assert _lines(log)[-1] == "the last line"  # data
    assert sum(map(len, _lines(log))) <= LOG_BYTES


def test_a_parameter_file_without_end_has_no_values(tmp_path: Path) -> None:
    assert read_parameter_file(ENDLESS) == {}
    assert read_parameter_file(sparse(tmp_path / "x")) == {}
