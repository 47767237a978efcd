"""Kernels compiled by numba once and loaded without it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

from runner.errors import RunnerError
from runner.runtimes.core import kernels, processor
from runner.runtimes.core.atomic import inner
from runner.runtimes.core.compile import compile_functions
from runner.runtimes.core.machine_code import MachineCode
from runner.runtimes.core.sources import sources_key
from runner.types import COMPILING
from tests.refusals import refused
from tests.runner.others import needs_root, shared

__all__ = ["shared"]

HERE = Path(__file__).parent
ADD = """
import sys, numpy as np
from runner.runtimes.core.kernels import load
numbers = np.zeros(3)
load("kernel_that_adds").bind("add_one", numbers)()
print(numbers.tolist(), "numba" in sys.modules or "llvmlite" in sys.modules)
"""


WRONG = """
from runner.runtimes.core.compile import compile_functions
try:
    compile_functions({"f": (lambda a: a.nothing, "uint64(uint64)")}, "a test")
except Exception as error:
    print(type(error).__name__)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", f"{HERE.parents[1]}:{HERE}")
    kernels.load.cache_clear()
    yield tmp_path / f"autotune-{os.geteuid()}"
    kernels.load.cache_clear()


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ADD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.strip()


Capture = pytest.CaptureFixture[str]


def compiles(capfd: Capture) -> bool:
    """Whether the kernel is compiled anew when it is loaded, in this process."""
    kernels.load.cache_clear()
    capfd.readouterr()
    numbers = np.zeros(3)
    kernels.load("kernel_that_adds").bind("add_one", numbers)()
    assert numbers.tolist() == [1.0, 1.0, 1.0]
    said = capfd.readouterr().err
    return COMPILING in said or "note [cache.unusable]: " in said


def stored(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if path.suffix != ".lock")


def test_four_processes_on_an_empty_cache_compile_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Settings that would break the kernels or change them for everybody; they must not matter.
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    outcomes = [outcome(p) for p in [start() for _ in range(4)]]
    assert outcomes.count("[1.0, 1.0, 1.0] True") == 1
    assert outcomes.count("[1.0, 1.0, 1.0] False") == 3
    assert [path.suffix for path in stored(cache)] == [".bin"]


def test_damaged_cache_is_made_again(cache: Path) -> None:
    numbers = np.zeros(3)
    kernels.load("kernel_that_adds").bind("add_one", numbers)()
    [path] = stored(cache)
    whole = path.read_bytes()
    for damage in (lambda w: b"", lambda w: b"{}\n" + w, lambda w: w[:-1] + bytes([w[-1] ^ 1])):
        damaged = damage(whole)
        path.write_bytes(damaged)
        kernels.load.cache_clear()
        kernels.load("kernel_that_adds").bind("add_one", numbers)()
        whole = path.read_bytes()
        assert whole != damaged
        assert MachineCode.from_bytes(whole) is not None
    assert numbers.tolist() == [4.0, 4.0, 4.0]


def test_unwritable_cache_is_said_and_survived(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache.write_text("a file where the directory should be")
    numbers = np.zeros(3)
    kernels.load("kernel_that_adds").bind("add_one", numbers)()
    assert numbers.tolist() == [1.0, 1.0, 1.0]
    said = capfd.readouterr().err
    assert said.startswith("note [cache.unusable]: ")
    assert str(cache) in said


def test_kernel_that_can_raise_is_refused(cache: Path) -> None:
    with refused(RunnerError, "native.kernel"):
        kernels.load("kernel_that_divides")
    assert stored(cache) == []


def test_missing_module_is_an_error(cache: Path) -> None:
    with refused(RunnerError, "native.kernel"):
        kernels.load("no_such_kernels")


def test_arguments_are_checked_and_kept_alive(cache: Path) -> None:
    found = kernels.load("kernel_that_adds")
    for wrong in (np.zeros(3, np.float32), np.zeros(6)[::2]):
        with pytest.raises(ValueError, match="add_one"):
            found.bind("add_one", wrong)
    with pytest.raises(ValueError, match="add_one"):
        found.bind("add_one", np.zeros(3), np.zeros(3))
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        found.bind("add_one", frozen)
    with pytest.raises(KeyError):
        found.bind("subtract_one", np.zeros(3))
    call = found.bind("add_one", kept := np.zeros(3))
    view = kept[:]
    del kept
    call()
    assert view.tolist() == [1.0, 1.0, 1.0]


def test_code_of_somebody_else_is_not_loaded(cache: Path, capfd: Capture) -> None:
    """A cache that others write to: what they put there would run in every rank."""
    assert compiles(capfd)
    assert not compiles(capfd)
    for mode in (0o666, 0o664, 0o644):
        [code] = stored(cache)
        code.chmod(mode)
        assert compiles(capfd)
    [code] = stored(cache)
    assert code.stat().st_mode & 0o777 == 0o600
    if os.geteuid() == 0:
        os.chown(code, 65534, -1)
        assert compiles(capfd)


def test_links_in_a_shared_cache_lead_nowhere(cache: Path, capfd: Capture) -> None:
    """The code to a file whose bytes somebody else chose, the lock to one that must stay."""
    assert compiles(capfd)
    [code] = stored(cache)
    chosen, thesis = cache.parent / "download", cache.parent / "thesis"
    chosen.write_bytes(code.read_bytes())
    chosen.chmod(0o600)
    thesis.write_text("long work")
    for path, target in ((code, chosen), (code.with_suffix(".lock"), thesis)):
        path.unlink()
        path.symlink_to(target)
    assert compiles(capfd)
    assert thesis.read_text() == "long work"
    assert not code.is_symlink()
    assert not compiles(capfd)


@needs_root
def test_the_folder_of_another_user_in_a_shared_place_is_not_used(
    cache: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """``NUMBA_CACHE_DIR=/tmp``: the first to come may be somebody else."""
    assert compiles(capfd)
    shared.chmod(0o1777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    place = kernels.cache_dir()
    shutil.copytree(cache, place)
    place.chmod(0o777)
    os.chown(place, 65534, 65534)
    assert compiles(capfd)
    os.chown(place, 0, 0)
    assert not compiles(capfd)
    assert place.stat().st_mode & 0o022 == 0


def test_functions_of_the_c_libraries_are_found(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kernel_that_calls  # type: ignore[import-not-found]

    monkeypatch.setattr(kernel_that_calls, "KERNELS", {"root": ("float64",)})
    numbers = np.array([1.0, 64.0, 0.0])
    kernels.load("kernel_that_calls").bind("root", numbers)()
    assert numbers.tolist() == [2.0, 12.0, 0.0]


LOST = """
from runner.errors import RunnerError
from runner.runtimes.core.kernels import load
try:
    load("kernel_that_calls")
except RunnerError as error:
    print(error.code, error)
"""


def test_an_unknown_function_is_refused_and_not_called(cache: Path) -> None:
    # In a process of its own: numba's own compiler keeps the unknown name for good.
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("native.missing "), done.stderr
    assert " a_function_that_is_nowhere, " in done.stdout


def test_a_change_of_an_imported_module_makes_new_code(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("x = 1\n")
    (package / "middle.py").write_text("from own_kernels import deep\n")
    (package / "top.py").write_text("import json\nfrom own_kernels.middle import (\n    x,\n)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = sources_key("own_kernels.top")
    assert sources_key("own_kernels.top") == before
    (package / "deep.py").write_text("x = 2\n")
    assert sources_key("own_kernels.top") != before


X86 = """processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: A processor
stepping	: 8
cpu MHz		: 2000.000
flags		: fpu avx2 constant_tsc nonstop_tsc

processor	: 1
flags		: fpu sse2

"""


def test_code_is_for_a_model_and_its_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(processor, "_CPUINFO", str(cpuinfo))

    def key(text: str | None) -> str:
        cpuinfo.unlink(missing_ok=True)
        if text is not None:
            cpuinfo.write_text(text)
        processor._first.cache_clear()
        kernels._compilers.cache_clear()
        return kernels._key(b"")

    try:
        first = key(X86)
        assert processor.flags() == {"fpu", "avx2", "constant_tsc", "nonstop_tsc"}
        assert key(X86.replace("2000.000", "3123.456").replace("fpu sse2", "fpu sse4")) == first
        others = [
            key(X86.replace("avx2", "avx2 avx512f")),
            key(X86.replace("143", "207")),
            key(X86.replace("GenuineIntel", "AuthenticAMD")),
            key("CPU part	: 0xd40\nFeatures	: fp asimd sve\n\n"),
            key("CPU part	: 0xd0c\nFeatures	: fp asimd sve\n\n"),
            key(None),
        ]
        assert processor.flags() == frozenset()
        assert len({first, *others}) == 7
    finally:
        processor._first.cache_clear()
        kernels._compilers.cache_clear()


def test_a_function_of_the_core_is_compiled_once_for_all_constants() -> None:
    def given(x: int) -> int:
        return x + 1

    once = inner(given)

    def both(x: int) -> int:
        return once(x) + once(7) + once(9)

    code = compile_functions({"both": (both, "int64(int64)")}, "test")
    assert kernels.Kernels(code).function("both")(1) == 20
    assert [str(s) for s in once.nopython_signatures] == ["(int64,) -> int64"]  # type: ignore[attr-defined]


def test_python_can_call_what_stored_code_calls() -> None:
    @numba.njit
    def twice(x: int) -> int:
        return 2 * x

    def four_times(x: int) -> int:
        return twice(twice(x))

    code = compile_functions({"four_times": (four_times, "int64(int64)")}, "test")
    assert kernels.Kernels(code).function("four_times")(10) == 40
    assert twice(21) == 42
    assert numba.njit(four_times)(3) == 12


def test_compiling_adds_nothing_to_the_output_on_a_terminal(cache: Path) -> None:
    """colorama is installed; numba starts it for a message, and it writes when a program ends.

    mpirun gives each rank a terminal.
    """
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", f"import colorama\n{WRONG}"]
    subprocess.run(words, stdout=theirs, check=True)
    os.close(theirs)
    assert os.read(ours, 4096).decode() == "TypingError\r\n"
    os.close(ours)
