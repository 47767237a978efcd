"""What the tests of compiled regions share: an empty store of code, and programs in files."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.runtimes.core import core
from tests.mate.compiled.running import HEAD

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty store of compiled code; that of the core is loaded from the user's before."""
    core.functions()
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(place))
        patch.delenv("MATE_CHECK", raising=False)
        yield place / f"autotune-{os.geteuid()}"


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Any]:
    """Makes a module of program text after :data:`HEAD`, in a file of its own."""

    def load(text: str) -> Any:
        path = tmp_path / f"program{next(_numbers)}.py"
        path.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
