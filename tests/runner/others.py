"""Another user of the machine: a child process that gives up root, and what it can do."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

OTHER, GROUP = 65534, 4242
"""The other user, and a group of a project that has this user and the other one."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")


def become_other() -> None:
    """Give up root for good: this process is the other user's, a member of the project's group."""
    os.setgroups([GROUP])
    os.setresgid(OTHER, OTHER, OTHER)
    os.setresuid(OTHER, OTHER, OTHER)


@contextlib.contextmanager
def attempts_of_other(do: Callable[[Path], object]) -> Iterator[Callable[[Path], bool]]:
    """``attempt(place)``: whether ``do(place)`` succeeds for the other user, in one process."""
    asked, ask = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ask)
            become_other()
            with os.fdopen(asked, encoding="utf-8") as places:
                for place in places:
                    try:
                        do(Path(place.removesuffix("\n")))
                        os.write(tell, b"y")
                    except OSError:
                        os.write(tell, b"n")
            os._exit(0)
        finally:
            os._exit(2)
    os.close(asked)
    os.close(tell)

    def attempt(place: Path) -> bool:
        os.write(ask, f"{place}\n".encode())
        answer = os.read(told, 1)
        assert answer in (b"y", b"n"), answer
        return answer == b"y"

    try:
        yield attempt
    finally:
        os.close(ask)
        os.close(told)
        _, status = os.waitpid(child, 0)
        assert status == 0


def as_other(do: Callable[[], object]) -> bool:
    """Whether ``do`` succeeds for the other user."""
    child = os.fork()
    if child == 0:
        try:
            become_other()
            do()
            os._exit(0)
        except OSError:
            os._exit(1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1)
    return code == 0


@contextlib.contextmanager
def entered_by_all() -> Iterator[Path]:
    """A folder that every user can enter; pytest's own can be entered by this user only."""
    place = Path(tempfile.mkdtemp(prefix="autotune-tests-", dir="/tmp")).resolve()
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def shared() -> Iterator[Path]:
    """The same for one test."""
    with entered_by_all() as place:
        yield place
