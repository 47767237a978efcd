"""Rules of collectives as JSON: coll/tuned version 3 (Open MPI 6) and MPICH (field.md G2, G3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from autotune.errors import UsageError
from autotune.publish.content import Content, Rule
from autotune.publish.formats.base import Loading
from autotune.publish.formats.rules_text import RulesV1
from autotune.publish.rules import check_rules, grouped
from runner.mpi.library import Library

_ALGORITHM = re.compile(r"MPIR_[A-Za-z0-9_]{1,100}")
_COLLECTIVE = re.compile(r"[a-z_]{1,40}")


class RulesV3(RulesV1):
    """The first rule that matches wins, so that ranges are written without overlap."""

    name = "rules-v3"
    summary = "rules file of coll/tuned, version 3 JSON (Open MPI 6)"
    suffix = ".rules.json"
    comment = None

    def unobeyed(self, library: Library) -> str | None:
        if library.family != "openmpi" or library.version_tuple < (6,):
            return f"Open MPI reads it from 6.0 on; here is {library.family} {library.version}"
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


class MpichJson(RulesV1):
    """MPICH's selection tree.  MPICH aborts in MPI_Init on a mistake in it."""

    name = "mpich-json"
    summary = "collective selection of MPICH (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)"
    suffix = ".mpich.json"
    family = "mpich"
    comment = None

    def unobeyed(self, library: Library) -> str | None:
        return super().unobeyed(library) or "MPICH does not tell which algorithm it took"

    def part(self, content: Content, library: Library) -> Content:
        return Content(rules=tuple(r for r in content.rules if _ALGORITHM.match(r.algorithm)))

    def body(self, content: Content, library: Library) -> str:
        for rule in content.rules:
            if not (
                _ALGORITHM.fullmatch(rule.algorithm) and _COLLECTIVE.fullmatch(rule.collective)
            ):
                raise UsageError(
                    f"the rule for {rule.collective} names the algorithm {rule.algorithm!r}; "
                    "MPICH's are called MPIR_... (letters, digits, _)"
                )
        tree = {
            f"collective={name}": {"comm_type=intra": _sizes(name, content.rules)}
            for name in dict.fromkeys(r.collective for r in content.rules)
        }
        return json.dumps(tree, indent=1) + "\n"

    def canaries(self, content: Content, library: Library) -> list[Any]:
        return []

    def live(self, path: Path, library: Library) -> Loading:
        return Loading({"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path.absolute())})


def _sizes(collective: str, rules: tuple[Rule, ...]) -> dict[str, Any]:
    """Upper ends instead of lower ones: the tree says ``size<N``, and ``any`` for the rest."""
    own = [r for r in rules if r.collective == collective]
    sizes = sorted({r.comm_size for r in own})
    tree = {}
    for size in sizes:
        last = _before(sizes, size)
        key = "comm_size=any" if last == "inf" else f"comm_size<={last}"
        entries = sorted((r for r in own if r.comm_size == size), key=lambda r: r.message)
        starts = [r.message for r in entries]
        inner: dict[str, Any] = {}
        for rule in entries:
            most = _before(starts, rule.message)
            word = "avg_msg_size=any" if most == "inf" else f"avg_msg_size<={most}"
            inner[word] = {f"algorithm={rule.algorithm}": {}}
        tree[key] = inner
    return tree
