"""Rules files of Open MPI's coll/tuned: versions 1 and 2 as lines of numbers, version 3 as JSON.

Version 3 is that of Open MPI 6.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autotune.collective_rules import (
    Rule,
    canary_rules,
    check_rules,
    group_rules,
    rules_of,
    rules_text,
)
from autotune.publish.content import Content
from autotune.publish.formats.base import Canary, Format, Loading
from runner.mpi.library import Library
from runner.mpi.openmpi.rules import ENABLE, FILE


class RulesV1(Format):
    """Version 1, read by every Open MPI up to 5.0.  Open MPI silently ignores a file with an error.
    So the canary has the real rules and a last rule whose effect is certain to be seen."""

    name = "rules-v1"
    summary = "rules file of coll/tuned, version 1 (Open MPI 4 and 5)"
    suffix = ".rules"
    family = "openmpi"
    usual = 1
    column = ""

    def obstacle(self, library: Library) -> str | None:
        if library.family == self.family and library.version_tuple >= (6,):
            return "Open MPI 6 reads sizes of this version differently; use rules-v3"
        return super().obstacle(library)

    def part(self, content: Content, library: Library) -> Content:
        return Content(rules=content.rules or rules_of(content.groups.get("mca", {})))

    def body(self, content: Content, library: Library) -> str:
        check_rules(content.rules, library)
        return rules_text(content.rules, self.column)

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        canary = canary_rules(content.rules, library)
        if canary is None:
            return []
        return [Canary(Content(rules=canary[0]), frozenset(content.names), canary[1], 3)]

    def live(self, path: Path, library: Library) -> Loading:
        where = ("--mca", FILE, str(path.absolute()))
        return Loading(options=("--mca", ENABLE, "1", *where))

    def expected_parameters(self, content: Content, library: Library) -> dict[str, str]:
        return {ENABLE: "1"}

    def naming(self, path: str) -> dict[str, str]:
        return {ENABLE: "1", FILE: path}


class RulesV2(RulesV1):
    """Version 2, with a column for the largest number of requests; read from 5.0.7 on."""

    name = "rules-v2"
    summary = "rules file of coll/tuned, version 2 (Open MPI from 5.0.7 on)"
    prologue = "rule-file-version-2\n"
    usual = 0
    column = " 0"

    def obstacle(self, library: Library) -> str | None:
        if library.family == self.family and library.version_tuple < (5, 0, 7):
            return f"Open MPI reads it from 5.0.7 on; this library is {library.version}"
        return super().obstacle(library)


class RulesV3(RulesV1):
    """Version 3.  The first matching rule is used, so ranges are written without overlap."""

    name = "rules-v3"
    summary = "rules file of coll/tuned, version 3 JSON (Open MPI 6)"
    suffix = ".rules.json"
    usual = 0
    comment = None

    def obstacle(self, library: Library) -> str | None:
        if library.family != self.family or library.version_tuple < (6,):
            return f"Open MPI reads it from 6.0 on; this is {library.family} {library.version}"
        return None

    def body(self, content: Content, library: Library) -> str:
        check_rules(content.rules)
        collectives = {
            name.replace("reduce_scatter", "reducescatter").replace(
                "scatter_block", "scatterblock"
            ): [
                {
                    "comm_size_min": size,
                    "comm_size_max": _before(list(sets), size),
                    "rules": [_entry(rules, r) for r in rules],
                }
                for size, rules in sets.items()
            ]
            for name, sets in group_rules(content.rules).items()
        }
        data = {"rule_file_version": 3, "module": "tuned", "collectives": collectives}
        return json.dumps(data, indent=1) + "\n"


def _before(starts: list[int], start: int) -> int | str:
    """The last size before the next range begins."""
    next_starts = [s for s in starts if s > start]
    return min(next_starts) - 1 if next_starts else "inf"


def _entry(rules: list[Rule], rule: Rule) -> dict[str, Any]:
    return {
        "msg_size_min": rule.message,
        "msg_size_max": _before([r.message for r in rules], rule.message),
        "alg": int(rule.algorithm),
        "faninout": rule.fanout,
        "seg_size": rule.segment,
        "reqs": 0,
    }
