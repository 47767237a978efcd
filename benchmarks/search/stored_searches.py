"""Searches by ask and tell on numbered landscapes, stored: a second call plays only new ones.

The named settings are stored by the digest of the strategy's code, of the packages that it imports,
and of the code of the landscapes.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.space import Setting
from benchmarks.search.code_digest import ROOT, code_digest, contestant_module
from benchmarks.search.contestants import maker
from benchmarks.search.direct_search import named_settings
from benchmarks.search.landscapes import Land
from runner import files
from runner.files import write_atomically

_AT_ONCE = 6
"""Searches between two writes of the file."""


@dataclass(frozen=True)
class Search:
    """One search: of ``strategy`` on the landscape that ``make(*arguments)`` makes."""

    strategy: str
    make: Callable[..., Land]
    arguments: tuple[object, ...]
    seed: int
    marks: tuple[int, ...]

    @property
    def key(self) -> str:
        """Its name in the file of its strategy."""
        return "/".join(map(str, (*self.arguments, self.seed)))

    def named(self) -> list[Setting]:
        """The setting that the strategy names at each mark."""
        land = self.make(*self.arguments)
        strategy = maker(self.strategy)(land.space, self.seed, (), self.marks[-1])
        return named_settings(land, strategy, self.seed, self.marks)


def named_by(searches: Sequence[Search], folder: str, jobs: int) -> list[list[Setting]]:
    """The settings named by searches of one strategy, read from its file or played now.

    ``folder`` is that of the benchmark in the cache; ``jobs`` processes play.
    """
    file = _file(searches[0], folder)
    stored = _read(file)
    missing = [search for search in searches if search.key not in stored]
    if missing:
        name = searches[0].strategy
        where = searches[0].arguments[0]
        print(f"{name}: {len(missing)} searches in {where}", file=sys.stderr, flush=True)
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            for number, named in enumerate(pool.imap(Search.named, missing)):
                stored[missing[number].key] = [dict(setting) for setting in named]
                if number % _AT_ONCE == 0 or number == len(missing) - 1:
                    _write(file, stored)
    return [[Setting(values) for values in stored[search.key]] for search in searches]


def _file(search: Search, folder: str) -> Path:
    """The file of a strategy with its present code and that of the landscapes."""
    name = search.strategy
    digest = code_digest(contestant_module(name))
    state = hashlib.sha256(f"{name} {search.marks} {digest}".encode())
    for module in (search.make.__module__.rpartition(".")[2], "direct_search"):
        state.update((ROOT / "benchmarks" / "search" / f"{module}.py").read_bytes())
    stored = f"{name.replace(':', '-')}-{state.hexdigest()[:16]}.json"
    return files.cache("benchmarks", folder) / stored


def _read(file: Path) -> dict[str, list[dict[str, object]]]:
    return dict(json.loads(file.read_text())) if file.exists() else {}


def _write(file: Path, stored: dict[str, list[dict[str, object]]]) -> None:
    """Store the searches beside those that another process may have stored since."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(_read(file) | stored))
