"""A publication's values against the default, measured again on the programs of its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

from autotune.config.cluster import Cluster
from autotune.errors import WorkError
from autotune.publish.claim import PAIRS, Claim, Status
from autotune.publish.content import Content, Evidence
from autotune.publish.programs import NotRun, program_of
from autotune.space import Parameter, Setting, Space
from autotune.space.parameter import Target as Group
from autotune.space.setting import read_value
from autotune.store import Store
from autotune.study.bench import MachineBusy
from autotune.study.budget import BudgetTooSmall
from autotune.study.compare import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.events import Watcher, silent
from autotune.words import UNGUARDED, count
from runner.mpi.library import Library


@dataclass
class Recheck:
    """One comparison of a publication's values against the default on one program."""

    source: str
    program: str
    status: Status
    words: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the gain is lost, or what was asked for could not be looked at."""
        return self.status in ("gone", "cannot be run")

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "program": self.program,
            "status": self.status,
            "still_better": {"still there": True, "gone": False}.get(self.status),
            **self.data,
            "words": self.words,
        }


def recheck(
    evidence: Evidence,
    content: Content,
    cluster: Cluster,
    library: Library,
    store: Store,
    *,
    pairs: int = PAIRS,
    budget_s: float | None = None,
    guard: bool = True,
    recorded: bool = False,
    watch: Watcher = silent,
) -> list[Recheck]:
    """Interleaved pairs of the default and the published values, on each program of the evidence.

    They go on until the published gain is seen to be there or gone, at most ``pairs``.
    ``recorded``: programs that are not known here are run as the file says.  The published files
    are out of force on both sides (``clean_env``): else the default would be measured with them.
    """
    space = Space(
        "published",
        tuple(
            Parameter(name, (read_value(value),), cast(Group, group))
            for group, values in sorted(content.groups.items())
            for name, value in sorted(values.items())
        ),
    )
    setting = Setting({p.name: p.levels[0] for p in space})
    found = []
    for check in evidence.check:
        again = program_of(check, cluster, library, evidence.source, recorded)
        if isinstance(again, NotRun):
            data = {"would_run": list(again.command)}
            status: Status = "cannot be run" if again.broken else "not compared"
            found.append(Recheck(evidence.source, again.name, status, again.words, data))
            continue
        target = again.target
        program = f"{target.app.name} on {count(target.ranks, 'rank')}"
        claim = claim_of(evidence, check)
        request = ComparisonRequest(
            target=target,
            space=space,
            first=Setting(),
            second=setting,
            plan=claim.plan(pairs),
            budget_s=budget_s,
            guard=guard,
            remeasure=True,
            watch=watch,
        )
        try:
            with again.origin.environment() if again.origin else nullcontext():
                outcome = compare_settings(request, store)
        except BudgetTooSmall as problem:
            found.append(Recheck(evidence.source, program, "cannot be told", str(problem)))
            continue
        except MachineBusy:
            raise
        except WorkError as problem:  # The other programs may still be looked at.
            found.append(Recheck(evidence.source, program, "cannot be run", str(problem)))
            continue
        found.append(_judged(evidence.source, program, claim, outcome))
    return found


def claim_of(evidence: Evidence, check: Mapping[str, Any]) -> Claim:
    """What was published for a program.  The gain of a table of collectives is that of single
    sizes, while its program times all of them: its share of the whole is not known."""
    if "gain" in check:
        own = check["gain"]
        good = isinstance(own, int | float) and not isinstance(own, bool) and 0 < own < 1e6
        return Claim(float(own)) if good else Claim(None, faster=False)
    if evidence.source.startswith("collectives:") or evidence.gain is None or evidence.gain <= 0:
        return Claim()
    return Claim(evidence.gain)


def _judged(source: str, program: str, claim: Claim, outcome: ComparisonOutcome) -> Recheck:
    data = outcome.to_json()
    if outcome.failed:
        return Recheck(source, program, "gone", outcome.failed, data)
    answer = claim.answer(outcome.decision)
    words = answer.words(outcome.decision)
    if not outcome.guarded:
        said = data | answer.to_json() | {"status": "cannot be told"}
        words = f"{UNGUARDED}, which shows nothing: {words}"
        return Recheck(source, program, "cannot be told", words, said)
    if outcome.cut_short and answer.status == "cannot be told":
        words += "; the budget was spent first"
    return Recheck(source, program, answer.status, words, data | answer.to_json())
