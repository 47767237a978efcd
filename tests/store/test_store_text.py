"""Text that any database takes, and processes that are told apart."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from autotune.store.model import OwnerProcess
from autotune.store.text import clean, dump, load


@given(st.text(st.characters()))
def test_clean_text_can_be_encoded_and_is_left_alone(text: str) -> None:
    once = clean(text)
    assert "\0" not in once
    assert once.encode("utf-8").decode("utf-8") == once == clean(once)


@given(st.text())
def test_ordinary_text_does_not_change(text: str) -> None:
    assert clean(text) == text.replace("\0", "\\x00")


def test_what_cannot_be_stored_is_written_as_an_escape() -> None:
    assert clean("a\udc80\0é") == "a\\udc80\\x00é"


@given(st.text(st.characters()))
def test_json_keeps_every_character(text: str) -> None:
    assert load(dump({text: [text]})) == {text: [text]}
    assert dump(text).isascii()


def test_the_living_are_not_dead() -> None:
    assert not OwnerProcess.current().surely_dead()


def test_a_zombie_is_dead() -> None:
    """Where nobody waits for a killed process it stays in the process table."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = int(_stat(child.pid)[19])
    process = OwnerProcess(
        OwnerProcess.current().host, OwnerProcess.current().scope, child.pid, started
    )
    assert not process.surely_dead()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert _stat(child.pid)[0] == "Z"
    assert process.surely_dead()
    child.communicate()
    assert process.surely_dead()


def _stat(pid: int) -> list[str]:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()


def test_a_number_that_was_given_again_is_another_process() -> None:
    here = OwnerProcess.current()
    assert OwnerProcess(here.host, here.scope, here.pid, here.start - 1).surely_dead()


def test_a_restarted_machine_ended_everything_on_it() -> None:
    here = OwnerProcess.current()
    assert OwnerProcess(here.host, "earlier-boot/pid:[1]", here.pid, here.start).surely_dead()


def test_what_cannot_be_seen_is_not_called_dead() -> None:
    here = OwnerProcess.current()
    boot = here.scope.partition("/")[0]
    assert not OwnerProcess("elsewhere", "other-boot/pid:[1]", here.pid, here.start).surely_dead()
    assert not OwnerProcess(here.host, f"{boot}/pid:[1]", here.pid, here.start - 1).surely_dead()
