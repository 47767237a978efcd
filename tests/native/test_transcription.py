"""The lock-free part of the compiled core in C: under ThreadSanitizer, and with delayed stores.

The C text (``transcription/``) names for each function the Python function that it transcribes and
its digest, so that a change of one without the other is noticed.
"""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.case_table import case_table

HERE = Path(__file__).with_name("transcription")
CORE = Path(__file__).parents[2] / "runner" / "runtimes" / "core"
MARK = re.compile(r"^/\* (\w+)\.(\w+) ([0-9a-f]{12}) \*/$", re.MULTILINE)
LEFT_OUT = {
    "dice": set[str](),
    "queue": {"worker_of", "rank_of"},
    "graph": {"fail", "note", "begin_turn", "count_turn"},
    # The log; the thread that only polls.
    "scheduler": {"_note_lapse", "_serve"},
    # What is called passes on to a function that is transcribed; the rest is the log.
    "exports": {
        *("enter", "link", "wake_rank", "complete", "start_message", "switch_kind", "post"),
        *("stop_all", "call_poller", "lock_mpi", "unlock_mpi", "count", "close_core"),
        *("seconds", "cpu_seconds", "count_as", "note_requests", "_note_requests"),
        *("wait_messages", "transfer_message", "post_message", "take_messages", "live_on"),
    },
    # What goes from stack to stack, and waits for other messages in the same way.
    "fiber": {"leave", "live", "transfer", "post_ahead", "take_all"},
    # Each under the lock of the receiver's mail.
    "mail": {"deliver", "hand_over", "_leave", "_more_letters"},
    # Tables and looks without a lock that save time.
    "guest": {"entry_of", "offers", "host_of"},
    # MPI's locks and handles, memory; the table of traffic, whose rows only the worker that runs
    # the sender writes.
    "message": {
        *("_call", "_mpi_lock", "_mpi_unlock", "_handle", "_set_handle", "_grow"),
        *("_grow_requests", "_resize", "_count"),
    },
}
WEAK = {
    1: "unlock is relaxed",
    2: "the count of an edge is relaxed",
    3: "the count of a region's dependencies is relaxed",
    4: "take stores RUNNING, and a store may be seen late",
    5: "an idle worker counts its turn before it is not idle",
    6: "a worker looks for ranks before it counts as asleep",
    7: "push looks for sleepers before the rank is on the queue",
    8: "an idle worker that has polled the last message sleeps without another look",
    9: "the time of the next poll is a plain word",
    10: "a guest goes before it has put the rank back",
    11: "a guest counts no turn",
    12: "a guest parks a rank that has another ready region",
    13: "the last message of a region that waits does not wake its rank",
    14: "an idle worker that looks elsewhere counts no turn before it takes a rank",
    15: "a worker that leaves an MPI call to another one does not call it",
}
RACES = {1, 2, 3, 9}
"""What the sanitizer finds; the others lose a call or report a deadlock that is none."""


def functions(module: str) -> dict[str, str]:
    """Digest of each function of a module of the core, without docstrings and comments."""
    found = {}
    for node in ast.parse((CORE / f"{module}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            if ast.get_docstring(node):
                node.body = node.body[1:] or [ast.Pass()]
            found[node.name] = hashlib.sha256(ast.unparse(node).encode()).hexdigest()[:12]
    return found


def transcribed() -> dict[tuple[str, str], tuple[str, str]]:
    """(module, function) -> (digest, C file)."""
    return {
        (module, name): (digest, path.name)
        for path in sorted(HERE.iterdir())
        for module, name, digest in MARK.findall(path.read_text())
    }


def test_the_c_text_transcribes_the_core_as_it_is() -> None:
    changed = []
    for (module, name), (digest, file) in transcribed().items():
        now = functions(module).get(name, "gone")
        if now != digest:
            changed.append(f"{module}.{name} has changed: transcribe it in {file}, then note {now}")
    assert not changed, "\n".join(changed)


@case_table("module", LEFT_OUT)
def test_no_function_of_the_core_is_forgotten(module: str) -> None:
    there = {name for other, name in transcribed() if other == module}
    assert not there & LEFT_OUT[module]
    assert set(functions(module)) == there | LEFT_OUT[module]


def build(place: Path, *options: str) -> Path:
    """The compiled transcription, or a skip."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc not installed: the transcription needs it")
    program = place / "rounds"
    command = ["gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
    command += [*options, str(HERE / "rounds.c"), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "libtsan" in done.stderr:
        pytest.skip("no libtsan: gcc cannot link -fsanitize=thread")
    assert done.returncode == 0, done.stderr
    return program


def sanitized(place: Path, *options: str) -> Path:
    # The sanitizer does not know fences, and gcc warns of them; the orders do without them.
    return build(place, "-fsanitize=thread", "-Wno-tsan", *options)


def run(program: Path, seed: int, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), str(seed), "1000000", str(seconds)],
        env={"TSAN_OPTIONS": "halt_on_error=1 exitcode=66"},
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )


def test_a_few_rounds_give_equal_data(tmp_path: Path) -> None:
    program = build(tmp_path, "-DBUFFERED")
    done = subprocess.run([str(program), "7", "40", "60"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("40 rounds, ")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_race_and_equal_data(tmp_path: Path, seed: int) -> None:
    done = run(sanitized(tmp_path), 10**6 * seed, 60)
    assert done.returncode == 0, done.stderr[:4000]
    assert int(done.stdout.split()[0]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_equal_data_however_late_a_store_is_seen(tmp_path: Path, seed: int) -> None:
    done = run(build(tmp_path, "-DBUFFERED"), 10**6 * seed, 60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("rule", WEAK)
def test_a_broken_rule_is_found(tmp_path: Path, rule: int) -> None:
    weak = f"-DWEAK={rule}"
    if rule in RACES:
        done = run(sanitized(tmp_path, weak), 1, 60)
        assert "WARNING: ThreadSanitizer: data race" in done.stderr, WEAK[rule]  # data
        assert done.returncode == 66
    else:
        done = run(build(tmp_path, "-DBUFFERED", weak), 5, 300)
        assert done.returncode in (4, 5), WEAK[rule]
