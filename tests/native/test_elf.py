"""The loader of object code: against LLVM's own on real objects, and what it refuses."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.runtimes import mate
from runner.runtimes.core import core, elf, kernels
from runner.runtimes.core.compile import compile_functions, compile_kernels
from runner.runtimes.core.machine_code import LlvmImage, MachineCode, address_of, loaded
from runner.runtimes.core.processor import target_machine
from tests.case_table import case_table
from tests.refusals import refused

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not core.supported() or platform.machine() != "x86_64",
    reason="the loader is for x86-64 Linux; other systems load with LLVM",
)
NEAR = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 64
@count = internal global i64 100
@zero = internal global [9 x i64] zeroinitializer
@place = internal global ptr @count

define internal i64 @entry_of_table(i64 %n) noinline {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %n
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @next(i64 %n) {
  %p = load volatile ptr, ptr @place
  %old = load i64, ptr %p
  %t = call i64 @entry_of_table(i64 %n)
  %new = add i64 %old, %t
  store volatile i64 %new, ptr %p
  %z = getelementptr [9 x i64], ptr @zero, i64 0, i64 %n
  %seen = load i64, ptr %z
  %more = add i64 %seen, 1
  store volatile i64 %more, ptr %z
  %sum = add i64 %new, %seen
  ret i64 %sum
}
"""
"""Code, constants, variables with and without values, and an address in a variable."""
RELATIVE = """
@count = internal global i64 100
@offset = internal constant i64 sub (
  i64 ptrtoint (ptr @count to i64), i64 ptrtoint (ptr @offset to i64))

define i64 @next(i64 %n) {
  %p = ptrtoint ptr @offset to i64
  %o = load volatile i64, ptr @offset
  %q = add i64 %p, %o
  %c = inttoptr i64 %q to ptr
  %v = load i64, ptr %c
  %w = add i64 %v, %n
  store i64 %w, ptr %c
  ret i64 %w
}
"""
"""The distance of two places."""
ADDRESS = """
@table = dso_local constant [2 x i64] [i64 1, i64 2]
@low = dso_local constant i32 trunc (i64 ptrtoint (ptr @table to i64) to i32)
define i64 @next(i64 %n) {
  %p = getelementptr [2 x i64], ptr @table, i64 0, i64 %n
  %v = load i64, ptr %p
  %l = load volatile i32, ptr @low
  %a = zext i32 %l to i64
  %s = add i64 %v, %a
  ret i64 %s
}
"""
CALLS = """
declare i64 @labs(i64)
define i64 @next(i64 %n) {
  %m = sub i64 0, %n
  %v = call i64 @labs(i64 %m)
  ret i64 %v
}
"""
FAR = """
@environ = external global ptr
define i64 @next(i64 %n) {
  %p = load ptr, ptr @environ
  %v = ptrtoint ptr %p to i64
  ret i64 %v
}
"""
LOCAL = """
@own = thread_local global i64 1
define i64 @next(i64 %n) {
  %v = load i64, ptr @own
  ret i64 %v
}
"""
CHOSEN = """
define internal i64 @plain(i64 %n) {
  ret i64 %n
}
define internal ptr @choose() {
  ret ptr @plain
}
@chosen = ifunc i64 (i64), ptr @choose
define i64 @next(i64 %n) {
  %v = call i64 @chosen(i64 %n)
  ret i64 %v
}
"""
MODELS = {
    "stored": {},
    "far": {"codemodel": "large", "reloc": "static"},
    "near": {"codemodel": "small", "reloc": "pic"},
    "absolute": {"codemodel": "small", "reloc": "static"},
}


def made(text: str, model: str = "stored") -> MachineCode:
    """The object that LLVM makes of its assembly."""
    machine = target_machine()
    if MODELS[model]:
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(opt=0, **MODELS[model])
    functions = {"next": ["int64", "int64"]}
    return MachineCode({}, machine.emit_object(llvm.parse_assembly(text)), functions, [])


def image(code: MachineCode) -> elf.Image:
    return elf.Image(code.object_code, address_of)


def function(place: elf.Image | LlvmImage, name: str = "next") -> Callable[[int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(place.address(name))


def kinds(code: MachineCode) -> set[int]:
    """The kinds of the object's relocations, without those of unwind tables."""
    data = code.object_code
    head = elf._HEADER.unpack_from(data)
    heads = [elf._SECTION.unpack_from(data, head[6] + n * head[11]) for n in range(head[12])]
    return {
        kind
        for h in heads
        if h[1] == elf._RELA and heads[h[7]][1] != elf._UNWIND and heads[h[7]][2] & elf._ALLOC
        for _, kind, _, _ in elf._RELOCATION.iter_unpack(data[h[4] : h[4] + h[5]])
    }


@case_table(
    ("text", "model", "wanted"),
    [
        (NEAR, "stored", {1}),
        (NEAR, "far", {1}),
        (NEAR, "near", {1, 2}),
        (RELATIVE, "far", {1, 24}),
        (CALLS, "far", {1}),
    ],
)
def test_objects_give_what_llvm_gives(text: str, model: str, wanted: set[int]) -> None:
    code = made(text, model)
    assert wanted <= kinds(code)
    own, other = function(image(code)), function(LlvmImage(code))
    numbers = [0, 1, 3, 2, 3, 3, 1]
    assert [own(n) for n in numbers] == [other(n) for n in numbers]


@pytest.fixture
def low_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images lie in the lowest part of the address space, so each is near to every other."""
    monkeypatch.setattr(elf.mmap, "MAP_PRIVATE", elf.mmap.MAP_PRIVATE | 0x40)  # MAP_32BIT


@pytest.mark.usefixtures("low_memory")
def test_a_function_in_reach_is_called_by_its_distance() -> None:
    code = made(CALLS, "near")
    assert 4 in kinds(code)
    double = image(made("define i64 @next(i64 %n) {\n %d = shl i64 %n, 1\n ret i64 %d\n}\n", "far"))
    place = elf.Image(code.object_code, {"labs": double.address("next")}.__getitem__)
    assert [function(place)(n) for n in (0, 1, 3)] == [0, -2, -6]


@pytest.mark.usefixtures("low_memory")
def test_addresses_of_32_bits() -> None:
    """They fit only where the memory is in the lowest part of the address space."""
    code = made(ADDRESS, "absolute")
    assert {10, 11} <= kinds(code)
    place = image(code)
    table = place.address("table")
    assert table < 1 << 31
    assert [function(place)(n) for n in (0, 1)] == [table + 1, table + 2]


def test_compiled_code_gives_what_llvm_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import kernel_that_calls  # type: ignore[import-not-found]

    monkeypatch.setattr(kernel_that_calls, "KERNELS", {"root": ("float64",)})
    for module, kernel in (("kernel_that_adds", "add_one"), ("kernel_that_calls", "root")):
        code = compile_kernels(module)
        results = []
        for place in (image(code), LlvmImage(code)):
            numbers = np.array([1.0, 64.0, 0.3])
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(place.address(kernel))(numbers.ctypes.data)
            results.append(numbers.tolist())
        assert results[0] == results[1] != [1.0, 64.0, 0.3]

    def shape(x: float, n: int) -> float:
        total = 0.0
        for k in range(n):
            total += np.exp(-x * k) * np.sin(x) + (k == 7) * 1e-3
        return total

    code = compile_functions({"shape": (shape, "float64(float64, int64)")}, "test")
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    own, other = (prototype(p.address("shape")) for p in (image(code), LlvmImage(code)))
    assert [own(x / 7, 40) for x in range(9)] == [other(x / 7, 40) for x in range(9)]
    assert own(0.5, 40) == pytest.approx(shape(0.5, 40), rel=1e-14)


def test_the_core_runs_with_either_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(core.functions()._code, elf.Image)

    async def main(ctx: mate.Context) -> int:
        given, got = np.array([ctx.rank]), np.array([-1])
        there = ctx.isend(given, (ctx.rank + 1) % ctx.size)
        await ctx.recv(got, (ctx.rank - 1) % ctx.size)
        await ctx.wait(there)
        return int(got[0])

    config = mate.Config(workers=2, ranks_per_process=4, affinity="none")
    results = [mate.run(main, config).results]
    monkeypatch.setattr(elf, "Image", refuse)
    kernels.load.cache_clear()
    core.functions.cache_clear()
    try:
        assert isinstance(core.functions()._code, LlvmImage)
        results.append(mate.run(main, config).results)
    finally:
        kernels.load.cache_clear()
        core.functions.cache_clear()
    assert results == [[3, 0, 1, 2]] * 2


def refuse(data: bytes, find: Callable[[str], int]) -> None:
    raise elf.NotUnderstood("anything")


def test_memory_is_never_writable_and_executable() -> None:
    text = "@table = constant [2 x i64] [i64 1, i64 2]\n@count = global i64 7\n"
    place = image(made(text + "define i64 @next(i64 %n) {\n  ret i64 %n\n}\n"))
    found = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end, rights = re.split("[- ]", line, maxsplit=2)
        for name in ("next", "table", "count"):
            if int(begin, 16) <= place.address(name) < int(end, 16):
                found[name] = rights[:4]
    assert found == {"next": "r-xp", "table": "r--p", "count": "rw-p"}


def test_sections_are_aligned() -> None:
    """Vector instructions of compiled code rely on it."""
    text = """
@odd = constant [3 x i8] c"abc", section ".odd"
@wide = constant [8 x i64] zeroinitializer, section ".wide", align 64
define i64 @next(i64 %n) {
  ret i64 %n
}
"""
    place = image(made(text))
    assert place.address("wide") % 64 == 0
    assert ctypes.string_at(place.address("odd"), 3) == b"abc"
    assert ctypes.string_at(place.address("wide"), 64) == bytes(64)


def test_an_unknown_function_is_named() -> None:
    code = made(CALLS.replace("labs", "a_function_that_is_nowhere"))
    with pytest.raises(elf.NotUnderstood, match="a_function_that_is_nowhere"):
        image(code)
    code.symbols = ["a_function_that_is_nowhere"]
    with refused(RunnerError, "native.missing"):
        loaded(code)
    with pytest.raises(KeyError):
        image(made(NEAR)).address("previous")
    with pytest.raises(KeyError):
        LlvmImage(made(NEAR)).address("previous")


@case_table(
    ("text", "model", "reason"),
    [
        (FAR, "near", "relocation (9|41|42)"),
        (NEAR, "absolute", "address"),
        (LOCAL, "far", "flags 0x403"),
        (CHOSEN, "far", " 10"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, model: str, reason: str) -> None:
    with pytest.raises(elf.NotUnderstood, match=reason):
        image(made(text, model))


def test_llvm_loads_what_this_loader_refuses() -> None:
    place = loaded(made(FAR, "near"))
    assert isinstance(place, LlvmImage)
    wanted = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value
    assert function(place)(0) == wanted
    assert isinstance(loaded(made(NEAR)), elf.Image)


def test_a_function_too_far_away_is_refused() -> None:
    code = made(CALLS, "near")
    with pytest.raises(elf.NotUnderstood, match="address"):
        elf.Image(code.object_code, lambda name: 1 << 60)


WHOLE = [made(NEAR, model).object_code for model in ("far", "near")]


@given(st.sampled_from(WHOLE), st.integers(0, 5000), st.binary(min_size=1, max_size=8))
@settings(max_examples=400, deadline=None)
def test_a_damaged_object_is_refused_or_loaded(whole: bytes, at: int, bad: bytes) -> None:
    """Nothing but the one exception comes out, and no memory beside the own is written."""
    at %= len(whole)
    for damaged in (whole[:at], whole[:at] + bad + whole[at + len(bad) :]):
        try:
            elf.Image(damaged, address_of)
        except elf.NotUnderstood:
            continue


def test_other_machines_are_refused() -> None:
    whole = bytearray(WHOLE[0])
    whole[18] = 183  # aarch64
    with pytest.raises(elf.NotUnderstood, match="x86-64"):
        elf.Image(bytes(whole), address_of)


JOB = """
import sys
from runner.runtimes import mate

async def nothing(ctx):
    pass

mate.run(nothing, mate.Config(core="native"))
print(sorted({"llvmlite", "numba", "hashlib", "tempfile"} & set(sys.modules)))
"""


def test_a_job_with_stored_code_imports_no_compiler() -> None:
    core.functions()
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, timeout=100)
    assert done.stdout == "[]\n", done.stderr
