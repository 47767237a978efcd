"""Where launchers would put ranks, asked once for many tests.

Before its first proposal a search of a shipped space asks the launcher about each placement:
50 starts of mpirun, ten times the CPU time of a short run. Here a question that was answered in
this process is not asked again. Tests of the questions themselves ask each time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner import launch

OWN_OF_A_TEST = ("XDG_", "AUTOTUNE_", "PYTEST_")
"""Beginnings of the names of variables that no launcher reads."""

_answers: dict[tuple[Any, ...], str] = {}


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runners of this test look up what was answered to an equal question."""
    ask = launch.output_of

    def answer(
        words: Sequence[str], environment: Mapping[str, str], *, cwd: str | None, **more: bool
    ) -> str:
        variables = {n: v for n, v in environment.items() if not n.startswith(OWN_OF_A_TEST)}
        if any(Path(cwd or os.curdir, word).exists() for word in words[1:]):
            return ask(words, environment, cwd=cwd, **more)  # Of hosts, for example.
        question = (*words, frozenset(variables.items()), frozenset(os.sched_getaffinity(0)))
        if question not in _answers:
            _answers[question] = ask(words, environment, cwd=cwd, **more)
        return _answers[question]

    monkeypatch.setattr(launch, "output_of", answer)
