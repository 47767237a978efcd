"""Every ``python -m`` line of the documentation names a module, whose parser takes the words."""

from __future__ import annotations

import argparse
import importlib.util
import re
import runpy
import sys
from typing import Any, NoReturn

import pytest

from runner.programs.apps.common import mpi
from tests.case_table import case_table
from tests.docs.test_commands import BEHIND, PAGES, ROOT, SPAN, code_of, words_of

LINE = re.compile(r"\bpython3? -m ((?:benchmarks|docs|runner|tests)(?:\.\w+)*)(.*)")
NO_PARSER = {"docs.builders", "docs.builders.figures", "runner.programs.apps.jacobi3d.residuals"}
"""Modules that take no words."""
GUESTS = {"tests.fuzz.covered"}
"""Modules that need a package of their own."""


class _TakenError(Exception):
    """The words were parsed; the program ends here."""


class _Comm:
    """A communicator of two ranks for what is done before words are parsed."""

    size, rank = 2, 0

    def allgather(self, value: Any) -> list[Any]:
        return [value] * self.size

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value


def typed(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Why the parser of a module refuses the words; None if it takes them. Nothing is run."""
    whole = argparse.ArgumentParser.parse_args

    def parse_and_end(self: argparse.ArgumentParser, *given: Any, **more: Any) -> NoReturn:
        whole(self, *given, **more)
        raise _TakenError

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_end)
        patch.setattr(mpi, "run", lambda _name, _level, main: main(_Comm()))
        patch.setattr(sys, "argv", [module, *words])
        try:
            code = runpy.run_module(module, run_name="__main__", alter_sys=True)
        except _TakenError:
            return None
        except (Exception, SystemExit) as refusal:
            if "--help" in words and getattr(refusal, "code", 1) == 0:
                return None
            return f"{type(refusal).__name__}: {refusal}"
    return f"it ended without a parser: {code.get('__name__')}"


LINES = [
    (f"{page.relative_to(ROOT)}:{number}", found[1], found[2])
    for page in PAGES
    for number, line in code_of(page)
    if (found := LINE.search(BEHIND.sub("", line))) and "$(" not in line
]


def test_there_are_many() -> None:
    assert len(LINES) > 60


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@case_table(("place", "module", "words"), LINES)
def test_a_module_takes_its_words(
    place: str, module: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert importlib.util.find_spec(module) is not None, place
    if module in NO_PARSER | GUESTS:
        assert module in GUESTS or not words.split(), place
        return
    assert typed(module, words_of(words), monkeypatch) is None, place


def test_modules_in_sentences_are_there_or_said_to_be_gone() -> None:
    problems = []
    for page in PAGES:
        for part in re.split(r"\n\n|\n(?=[-*] )", page.read_text(encoding="utf-8")):
            for span in SPAN.findall(" ".join(part.split())):
                found = LINE.match(span)
                if found is None or "NAME" in found[1] or "gone" in part:
                    continue
                if importlib.util.find_spec(found[1]) is None:
                    problems.append(f"{page.relative_to(ROOT)}: {found[1]}")
    assert not problems, "\n".join(problems)


def test_a_wrong_word_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("benchmarks.claim", "runner.programs.apps.ring", "runner.programs.nas"):
        assert typed(module, ["--no-such-option"], monkeypatch)
