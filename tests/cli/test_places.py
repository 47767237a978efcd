"""Places that lack something: each is a sentence to the user."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.store.database import BUSY_TIMEOUT_S
from autotune.study.study_warnings import sharing_warnings
from runner.mpi.library import Library
from tests.programs import compiled

# WITHOUT are the numbers of the operations of fcntl that find no lock.
NO_LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static const int without[] = {WITHOUT};
static int answer(int fd, int command, void *given) {
  for (unsigned i = 0; i < sizeof without / sizeof *without; i++)
    if (command == without[i]) { errno = ENOLCK; return -1; }
  return syscall(SYS_fcntl, fd, command, given);
}
#define GIVEN va_list all; va_start(all, command); void *given = va_arg(all, void *); va_end(all)
int fcntl(int fd, int command, ...) { GIVEN; return answer(fd, command, given); }
int fcntl64(int fd, int command, ...) { GIVEN; return answer(fd, command, given); }
"""
NO_FLOCK = "int flock(int fd, int operation) { errno = ENOLCK; return -1; }\n"


def _run(source: str, work: Path, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """``autotune run`` in a place whose locks answer as the C source says."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) on PATH")
    compiled(["cc"], source, work / "locks.so", "-shared", "-fPIC")
    return subprocess.run(
        [sys.executable, "-m", "autotune", "run", "-n", "1", "--store", "r.db", "--", "true"],
        env={**os.environ, "LD_PRELOAD": str(work / "locks.so"), **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_system_without_locks_is_named(work: Path) -> None:
    began = time.monotonic()
    done = _run(NO_LOCKS.replace("WITHOUT", "F_SETLK, F_SETLKW, F_GETLK"), work, {})
    assert time.monotonic() - began < BUSY_TIMEOUT_S, "SQLite waited for locks that never come"
    assert done.returncode == 2, done.stderr
    assert "[store.file_system]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_machine_lock_that_cannot_be_locked_is_named(work: Path) -> None:
    lock = work / "machine.lock"
    source = NO_LOCKS.replace("WITHOUT", "F_OFD_SETLK, F_OFD_SETLKW") + NO_FLOCK
    done = _run(source, work, {"AUTOTUNE_LOCK_FILE": str(lock)})
    assert done.returncode == 1, done.stderr
    words = " ".join(done.stderr.split())
    assert "[lock.unusable]" in words
    assert str(lock) in words
    assert os.strerror(errno.ENOLCK) in words
    assert "Traceback" not in done.stderr


def test_a_place_without_any_network_interface_is_named(open_mpi: Library, work: Path) -> None:
    alone = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no name space of one's own here")
    words = ["run", "-n", "2", "--no-guard", "--store", "r.db", "--", "true"]
    done = subprocess.run(
        [*alone, sys.executable, "-m", "autotune", *words],
        # Who holds the tests' own lock is not seen from another name space.
        env={**os.environ, "AUTOTUNE_LOCK_FILE": str(work / "machine.lock")},
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    # Open MPI 4 needs no interface.
    started = open_mpi.version.startswith("4.") and done.returncode == 0
    told = " ".join((done.stderr + done.stdout).split())
    assert started or "ip link set lo up" in told  # data


def test_shared_cores_are_said_in_words() -> None:
    assert sharing_warnings(2, 2) == []
    assert sharing_warnings(2, 1)[0].data == {"ranks": 2, "cores": 1}
    assert sharing_warnings(8, 4)[0].data == {"ranks": 8, "cores": 4}


@pytest.mark.slow
def test_ranks_that_share_a_core_are_named(mpi_shell: str, work: Path) -> None:
    words = ["search", "--trials", "1", "--strategy", "random", "--no-guard", "--quiet", "-n", "2"]
    own = ["--store", "r.db", "--", mpi_shell, "true"]
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *words, *own],
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[ranks.shared_cores]" in done.stdout
