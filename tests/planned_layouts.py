"""Where launchers would put ranks, asked once for many tests.

Before its first proposal a search of a shipped space asks the launcher about each placement:
50 starts of mpirun, ten times the CPU time of a short run. Here a question that was answered in
one of the processes of pytest is not asked again. Tests of the questions themselves ask each time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from runner import launch

OWN_OF_A_TEST = ("XDG_", "AUTOTUNE_", "PYTEST_")
"""Beginnings of the names of variables that no launcher reads."""


def use(monkeypatch: pytest.MonkeyPatch, answers: Path) -> None:
    """Let runners of this test look up what was answered to an equal question.

    ``answers`` is the folder of the session, which has a file for each.
    """
    ask = launch.output_of

    def answer(
        words: Sequence[str], environment: Mapping[str, str], *, cwd: str | None, **more: bool
    ) -> str:
        variables = {n: v for n, v in environment.items() if not n.startswith(OWN_OF_A_TEST)}
        if any(Path(cwd or os.curdir, word).exists() for word in words[1:]):
            return ask(words, environment, cwd=cwd, **more)  # Of hosts, for example.
        question = (*words, *sorted(variables.items()), *sorted(os.sched_getaffinity(0)))
        known = answers / hashlib.sha256(repr(question).encode()).hexdigest()
        if not known.exists():
            own = known.with_suffix(f".{os.getpid()}")
            own.write_text(ask(words, environment, cwd=cwd, **more), encoding="utf-8")
            own.rename(known)
        return known.read_text(encoding="utf-8")

    monkeypatch.setattr(launch, "output_of", answer)
