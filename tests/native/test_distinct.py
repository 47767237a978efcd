"""Functions whose arrays share no memory: the compiler is told, results stay the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.runtimes.core import kernels
from runner.runtimes.core.atomic import inner
from runner.runtimes.core.distinct import distinct, is_distinct
from runner.runtimes.mate.compiled import lowering
from runner.runtimes.mate.compiled.source import read

HERE = Path(__file__).parent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(str(HERE))
    kernels.load.cache_clear()
    yield tmp_path
    kernels.load.cache_clear()


def add(a: Any, b: Any) -> None:
    for i in range(len(a)):
        b[i] += a[i]


def promises(compiled: Any) -> int:
    """How many pointers the compiler may take for distinct."""
    from numba import float64

    compiled.compile((float64[::1], float64[::1]))
    [text] = compiled.inspect_llvm().values()
    head = re.search(r"^define [^\n]*add[^\n]*", text, re.MULTILINE)
    assert head
    return head[0].count("noalias")


def marked() -> Any:
    def add(a: Any, b: Any) -> None:
        for i in range(len(a)):
            b[i] += a[i]

    return distinct(add)


@pytest.mark.parametrize("compile_", [inner, lambda f: lowering.dispatcher(f, read(f, "add"))])
def test_the_compiler_is_told(compile_: Any) -> None:
    plain, told = promises(compile_(add)), promises(compile_(marked()))
    # Each array has three pointers: the data, and two to what owns it.
    assert told == plain + 6


def test_a_marked_function_stays_a_plain_function() -> None:
    function = marked()
    assert is_distinct(function)
    assert not is_distinct(add)
    a, b = np.arange(3.0), np.ones(3)
    function(a, b)
    assert b.tolist() == [1.0, 2.0, 3.0]


def test_a_kernel_may_call_plain_functions(cache: Path) -> None:
    a, b = np.arange(3.0), np.ones(3)
    kernels.load("kernel_with_helpers").bind("scale_and_add", a, b)()
    assert b.tolist() == [1.0, 3.0, 5.0]
