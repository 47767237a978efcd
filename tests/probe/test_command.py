"""The small MPI program, compiled for a library, where mpi4py is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autotune.targets import startup as startups
from runner.errors import RunnerUsageError
from runner.launch import Runner
from runner.mpi.base import Adapter
from runner.mpi.discover import adapter, find_library
from runner.mpi.library import Library
from runner.probe import command
from runner.programs.micro.operations import OPERATIONS
from runner.types import LaunchSpec

OF_PYTHON_ONLY = {"bw", "bibw"}
"""Windows of messages: a test of bandwidth, which shows nothing that ``pingpong`` does not."""

pytestmark = pytest.mark.mpi


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(command, "_has_mpi4py", lambda: False)
    return find_library()


def test_each_operation_runs(library: Library) -> None:
    with Runner(adapter(library), guard=False) as runner:
        for operation in sorted(OPERATIONS.keys() - OF_PYTHON_ONLY):
            program = command.small_program(library, operation)
            record = runner.run(LaunchSpec(program=tuple(program), ranks=2, timeout_s=60))
            assert record.state == "ok", (operation, record.reason)


def test_an_unknown_operation_fails(library: Library) -> None:
    program = command.small_program(library, "nothing")
    with Runner(adapter(library), guard=False) as runner:
        record = runner.run(LaunchSpec(program=tuple(program), ranks=1, timeout_s=60))
    assert record.state == "failed"
    assert record.exit_code == 2


def test_values_are_read_back_from_it(library: Library) -> None:
    program = command.small_program(library, "allreduce", ("--thread-level", "multiple"))
    value = {"coll_tuned_use_dynamic_rules": "1"}
    spec = LaunchSpec(program=tuple(program), ranks=2, parameters={"mca": value}, timeout_s=60)
    with Runner(adapter(library), guard=False) as runner:
        record = runner.run(spec)
    assert {name: back.state for name, back in record.read_back.items() if name in value} == {
        "coll_tuned_use_dynamic_rules": "in force"
    }


def test_the_empty_program_starts_and_shows_its_transport(library: Library) -> None:
    found = startups.startup(library, (), runs=1)
    assert len(found.times) == 1
    assert found.transport


def test_without_compiler_and_mpi4py_the_extra_is_named(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Adapter, "c_compiler", lambda self: ())
    with pytest.raises(RunnerUsageError) as caught:
        command.small_program(library, "barrier")
    assert caught.value.code == "install.extra"


def test_its_ranks_import_neither_numpy_nor_mpi4py() -> None:
    source = Path(command.__file__).with_name("__main__.py")
    code = f"import runpy, sys; runpy.run_path({str(source)!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"numpy", "mpi4py", "numba"} & set(done.stdout.split())
