"""The launch itself: whether the launcher starts the ranks at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from autotune.check.corrections import unbound
from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule
from autotune.check.rules.slots import TooFewSlots
from runner.mpi.discover import adapter

_OVERLOAD = re.compile(r"binding\s+(?:more\s+)?processes\s+(?:to\s+more|than)\s+cpus", re.I)
"""What Open MPI says if it would have to bind two ranks to one core."""
_FRAMES = frozenset("-=*#")
_LONGEST = 160
_NO_PROGRAM = ("slurmstepd: error: execve()",)
"""What srun says of a program that it cannot start."""


class Fails(LaunchRule):
    """The launcher starts no rank."""

    code = "launch.fails"
    weight = Weight.WRONG
    summary = "the launcher does not start the ranks"
    explanation = (
        "The launcher ended with an error before any rank was seen: an option that it does not "
        "have, a program that it does not find, hosts that it does not reach. What the launcher "
        "prints is shown below the findings."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if the launch failed and no rank was seen; a refusal for slots has its own."""
        outcome = facts.outcome
        if outcome is None or not outcome.exit_code or (facts.ranks and not _refused(facts)):
            return
        if any(True for _ in TooFewSlots().examine(facts)):
            return
        message = _first_paragraph(outcome.error_tail)
        line = unbound(facts) if _OVERLOAD.search(outcome.error_tail) else None
        yield self.finding(
            f"{facts.line.launcher_name} ended with exit code {outcome.exit_code}"
            + (f": {message}" if message else ""),
            "nothing is started",
            Certainty.SEEN,
            where=facts.line.launcher,
            corrected_line=None if line is None else line.words,
        )


def _refused(facts: LaunchFacts) -> bool:
    """True if the launcher says that it could not start the program."""
    text = "" if facts.outcome is None else facts.outcome.error_tail
    own = () if facts.library is None else adapter(facts.library).refusals
    return any(words in text for words in (*own, *_NO_PROGRAM))


def _first_paragraph(text: str) -> str:
    """The first lines that belong together, without frames, in one line."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if not line or not set(line) <= _FRAMES]
    first = next((at for at, line in enumerate(rows) if line), len(rows))
    paragraph = takewhile(bool, rows[first:])
    return " ".join(paragraph)[:_LONGEST]
