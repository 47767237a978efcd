"""Rules files: from a setting, as text, and their canaries."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.collective_rules import IDS, Rule, canary_rules, check_rules, rules_of
from autotune.errors import UsageError
from autotune.publish.content import Content, without_rules
from autotune.publish.formats import find
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW

RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["allreduce", "bcast", "alltoall"]),
        st.integers(1, 64),
        st.integers(0, 1 << 20),
        st.sampled_from(["1", "2", "3"]),
        st.integers(0, 8),
        st.integers(0, 8192),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda r: (r.collective, r.comm_size, r.message),
)


def read(text: str) -> dict[int, dict[int, list[list[int]]]]:
    """As the library reads it: counts first, each followed by so many entries."""
    numbers = iter([int(w) for line in text.splitlines() for w in line.split("#")[0].split()])
    found: dict[int, dict[int, list[list[int]]]] = {}
    for _ in range(next(numbers)):
        sets = found.setdefault(next(numbers), {})
        for _ in range(next(numbers)):
            entries = sets.setdefault(next(numbers), [])
            for _ in range(next(numbers)):
                entries.append([next(numbers) for _ in range(4)])
    assert next(numbers, None) is None
    return found


@given(RULES)
def test_version_1_reads_back_as_it_was_meant(rules: list[Rule]) -> None:
    found = read(find("rules-v1").render(Content(rules=tuple(rules)), NEW))
    for sets in found.values():
        assert list(sets) == sorted(sets)
        for entries in sets.values():
            assert entries[0][0] == 0
            assert [e[0] for e in entries] == sorted({e[0] for e in entries})
    for rule in rules:
        wanted = [rule.message, int(rule.algorithm), rule.fanout, rule.segment]
        assert wanted in found[IDS[rule.collective]][rule.comm_size]


@given(RULES, st.integers(1, 100), st.integers(0, 1 << 21))
def test_version_3_picks_what_version_1_picks(rules: list[Rule], ranks: int, size: int) -> None:
    content = Content(rules=tuple(rules))
    old = read(find("rules-v1").render(content, NEW))
    new = json.loads(find("rules-v3").render(content, NEW))["collectives"]
    for name, sets in new.items():
        fit = [s for s in sets if s["comm_size_min"] <= ranks <= _end(s["comm_size_max"])]
        below = [n for n in old[IDS[name]] if n <= ranks]
        assert len(fit) == bool(below)
        if below:
            (rule,) = [
                r for r in fit[0]["rules"] if r["msg_size_min"] <= size <= _end(r["msg_size_max"])
            ]
            entry = [e for e in old[IDS[name]][max(below)] if e[0] <= size][-1]
            assert [rule["alg"], rule["faninout"], rule["seg_size"]] == entry[1:]


def _end(end: int | str) -> float:
    return float(end)


def test_rules_say_what_the_parameters_said() -> None:
    mca = {
        "coll_tuned_bcast_algorithm": "3",
        "coll_tuned_bcast_algorithm_segmentsize": "8192",
        "coll_tuned_bcast_algorithm_chain_fanout": "4",
        "coll_tuned_reduce_scatter_block_algorithm": "2",
        "coll_tuned_use_dynamic_rules": "1",
        "btl_sm_eager_limit": "4096",
    }
    assert rules_of(mca) == (
        Rule("bcast", 1, 0, "3", 4, 8192),
        Rule("reduce_scatter_block", 1, 0, "2"),
    )
    left = without_rules(Content({"mca": mca}, rules_of(mca)))
    assert left == Content({"mca": {"btl_sm_eager_limit": "4096"}})


def test_a_segment_size_alone_is_no_rule() -> None:
    with refused(UsageError, "rules.invalid"):
        rules_of({"coll_tuned_bcast_algorithm_segmentsize": "8192"})


@case_table(
    "rule",
    [
        Rule("nonsense", 1, 0, "1"),
        Rule("bcast", 0, 0, "1"),
        Rule("bcast", 1, -1, "1"),
        Rule("bcast", 1, 0, "ring"),
        Rule("bcast", 1, 0, "99"),
        Rule("bcast", 1, 2**31, "1"),
    ],
)
def test_rules_that_no_library_follows_are_refused(rule: Rule) -> None:
    with pytest.raises(UsageError, match=rule.collective):
        check_rules((rule,), NEW)


@given(RULES)
def test_the_canary_comes_last_and_takes_nothing_away(rules: list[Rule]) -> None:
    found = canary_rules(tuple(rules), NEW)
    assert found is not None
    text = find("rules-v1").render(Content(rules=found[0]), NEW)
    assert list(read(text))[-1] == IDS[found[1]]
    assert {r for r in rules if r.collective != found[1]} <= set(found[0])
