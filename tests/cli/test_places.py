"""Places that lack something: each is a sentence to the user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NO_LOCKS = """
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static int answer(int fd, int command, void *given) {
  if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {
    errno = ENOLCK;
    return -1;
  }
  return syscall(SYS_fcntl, fd, command, given);
}
#define GIVEN va_list all; va_start(all, command); void *given = va_arg(all, void *); va_end(all)
int fcntl(int fd, int command, ...) { GIVEN; return answer(fd, command, given); }
int fcntl64(int fd, int command, ...) { GIVEN; return answer(fd, command, given); }
"""


def test_a_file_system_without_locks_is_named(work: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) on PATH")
    (work / "locks.c").write_text(NO_LOCKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "locks.so", "locks.c"], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "run", "-n", "1", "--store", "r.db", "--", "true"],
        env={**os.environ, "LD_PRELOAD": str(work / "locks.so")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "has no file locks; put it on a local disk" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
