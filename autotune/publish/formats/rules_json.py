"""Rules of collectives as JSON: coll/tuned version 3, of Open MPI 6 (field.md G2)."""

from __future__ import annotations

import json
from typing import Any

from autotune.publish.content import Content
from autotune.publish.formats.rules_text import RulesV1
from autotune.rules import Rule, check_rules, grouped
from runner.mpi.library import Library


class RulesV3(RulesV1):
    """The first rule that matches wins, so that ranges are written without overlap."""

    name = "rules-v3"
    summary = "rules file of coll/tuned, version 3 JSON (Open MPI 6)"
    suffix = ".rules.json"
    usual = 0
    comment = None

    def unobeyed(self, library: Library) -> str | None:
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
            for name, sets in grouped(content.rules).items()
        }
        data = {"rule_file_version": 3, "module": "tuned", "collectives": collectives}
        return json.dumps(data, indent=1) + "\n"


def _before(starts: list[int], start: int) -> int | str:
    """The last size before the next range begins."""
    later = [s for s in starts if s > start]
    return min(later) - 1 if later else "inf"


def _entry(rules: list[Rule], rule: Rule) -> dict[str, Any]:
    return {
        "msg_size_min": rule.message,
        "msg_size_max": _before([r.message for r in rules], rule.message),
        "alg": int(rule.algorithm),
        "faninout": rule.fanout,
        "seg_size": rule.segment,
        "reqs": 0,
    }
