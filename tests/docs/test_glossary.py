"""The glossary names what is in the code, and a class name has one meaning."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
EVERY_PROGRAM_HAS_ITS_OWN = (
    *("runner/programs/apps/", "runner/programs/nas/"),
    *("runner/runtimes/tarragon/", "runner/runtimes/tpod/", "runner/runtimes/intranode/"),
)


def test_each_term_names_what_is_in_the_code() -> None:
    names = set(re.findall(r"`((?:autotune|runner)\.[\w.]+)`", TEXT))
    assert len(names) > 100
    parts = [name.rpartition(".") for name in sorted(names)]
    assert not [
        f"{module}.{leaf}"
        for module, _, leaf in parts
        if not hasattr(importlib.import_module(module), leaf)
    ]


def test_terms_are_defined_once() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+ \| [^|]+ \|$", TEXT, re.M)
    terms = [term for row in rows for term in row.split(", ") if row not in ("term", "---")]
    assert len(terms) == len(set(terms)) > 70


def test_a_public_class_name_has_one_meaning() -> None:
    """Applications and kernels are alike on purpose: each has its Options, Solver and Layout.

    So are the runtimes: each has its Config and Task, as their sources name them.

    ``Request`` of a translated program stands for ``MPI.Request``.
    """
    places = defaultdict(list)
    for package in ("autotune", "runner"):
        for path in (ROOT / package).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(EVERY_PROGRAM_HAS_ITS_OWN):
                continue
            for kind in re.findall(r"^class ([^\W_]\w*)", path.read_text("utf-8"), re.M):
                places[kind].append(name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) <= {"Request"}, twice
