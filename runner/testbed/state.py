"""The records of testbeds: one directory per name with a record, and a lock beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from runner import files
from runner.errors import RunnerError
from runner.files import MIB
from runner.files.json_text import parse_json
from runner.files.paths import is_folder
from runner.files.private_files import (
    drop_foreign,
    open_private,
    private_folder,
    read_private,
    write_private,
)
from runner.files.trusted_path import refuse_others
from runner.testbed.model import Testbed, testbed_from_json
from runner.testbed.processes import alive

DEFAULT_NAME = "testbed"
RECORD = "testbed.json"
TOKEN_FILE = "token"
_NAME = re.compile(r"[a-z][a-z0-9]{0,8}")
_PATIENCE_S = 60.0
_LARGEST = MIB


def root() -> Path:
    """``$XDG_RUNTIME_DIR/autotune-testbed``; without the variable, a folder of the user's cache."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute() and is_folder(runtime):
        return Path(runtime) / "autotune-testbed"
    return files.cache("testbeds")


def is_name(name: str) -> bool:
    """True if the text is allowed as the name of a testbed."""
    return _NAME.fullmatch(name) is not None


def directory(name: str) -> Path:
    """The directory of testbed ``name``; raises RunnerError if the name is not allowed."""
    if not is_name(name):
        # The name becomes part of device and command names, which the kernel limits to 15
        # characters.
        raise RunnerError(
            f"{name!r} cannot be a testbed's name; expected 1 to 9 lower-case letters and digits, "
            "a letter first",
            code="testbed.name",
        )
    return root() / name


def trusted_directory(name: str) -> Path:
    """The same; also raises RunnerError if other users control the directory."""
    place = directory(name)
    refuse_others(root(), place)
    return place


def names() -> list[str]:
    """Names of the testbeds of which any part exists, working or broken."""
    with contextlib.suppress(OSError):
        return sorted(p.name for p in root().iterdir() if is_folder(p) and is_name(p.name))
    return []


@contextlib.contextmanager
def hold_lock() -> Iterator[None]:
    """Hold the lock of all testbeds while one is brought up or down; a crash frees it.

    All testbeds have one lock: they share the networks, and simultaneous calibrations disturb each
    other.
    """
    try:
        lock = private_folder(root()) / "lock"
        drop_foreign(lock)
        file = open_private(lock)
    except OSError as error:
        raise RunnerError(
            f"testbeds cannot be recorded in {root()}: {error.strerror}", code="testbed.unwritable"
        ) from None
    with file:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise RunnerError(
                        "another process has been bringing a testbed up or down for a long time "
                        f"({lock} is locked)",
                        code="testbed.locked",
                    ) from None
                time.sleep(0.05)
        yield


def write_testbed(testbed: Testbed) -> None:
    """Write the record of the testbed, completely or not at all."""
    place = Path(testbed.directory)
    write_private(place / RECORD, json.dumps(dataclasses.asdict(testbed), indent=2) + "\n")


def read_testbed(name: str) -> Testbed | None:
    """The record; None if it is missing or not readable.

    Raises RunnerError if others control the place, because its content is run as root.
    """
    place = trusted_directory(name)
    try:
        testbed = testbed_from_json(parse_json(read_private(place / RECORD, _LARGEST)))
        return testbed if (testbed.name, testbed.directory) == (name, str(place)) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def works(testbed: Testbed) -> bool:
    """True if the delay line and every node of the record are still alive."""
    return alive(testbed.line) and all(alive(node.process) for node in testbed.nodes)


def find_testbed(name: str) -> Testbed:
    """The testbed ``name``; if it is not up, RunnerError says how to bring it up."""
    testbed = read_testbed(name)
    start = "autotune testbed up --nodes 2 --latency 1ms --rate 1gbit"
    start += "" if name == DEFAULT_NAME else f" --name {name}"
    if testbed is None:
        raise RunnerError(
            f"testbed {name} is not up.  Start it (as root):\n  {start}", code="testbed.down"
        )
    if not works(testbed):
        raise RunnerError(
            f"testbed {name} is broken: its delay line or a node was ended.  To start it "
            f"again (this cleans up first):\n  {start}",
            code="testbed.broken",
        )
    return testbed
