"""What a cluster's page says of tables and class-wide settings."""

from __future__ import annotations

from autotune.anova.classwide_result import ClasswideResult, ProgramEvidence
from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import CollectiveResult, TablePart
from autotune.collectives.table_proof import SizeEvidence
from autotune.report.cluster import classwide_section, collectives_section
from autotune.report.page import Page, render
from autotune.space import Setting


def test_a_heat_map_for_each_operation_with_something_proven() -> None:
    rules = (Rule("bcast", 4, 0, "0"), Rule("bcast", 4, 4096, "2", 4, 1024))
    rows = tuple(
        SizeEvidence(size, "x", 0.25, 0.1, 0.4, "better", size == 3000) for size in (64, 3000, 4096)
    )
    proven = TablePart("bcast", 4, rules, rows, 10, 100, 30, ())
    nothing = TablePart("reduce", 4, (Rule("reduce", 4, 0, "0"),), (), 10, 100, 30, ())
    result = CollectiveResult(
        "local", "m", {"name": "openmpi", "version": "5.0.8"}, "2026-11-21", (proven, nothing),
        {"bcast": {"2": "chain"}},
    )  # fmt: skip
    section = collectives_section(result)
    assert len(section.figures) == 1
    for word in ("chain 1k x4", "+25", ">4k<", "the library's own"):  # data
        assert word in section.figures[0].replace("&#x27;", "'").replace("&apos;", "'")
    assert "3000" not in section.figures[0]
    assert "1 of 2 tables" in section.words[0]


def test_the_class_with_what_was_held_out() -> None:
    evidence = (
        ProgramEvidence("cg", "A", 4, "local", False, 0.1, 0.05, 0.2, 12, "passed", "", "s"),
        ProgramEvidence("ep", None, 4, "local", True, None, None, None, 12, "failed", "", "s"),
    )
    result = ClasswideResult(
        "recommended", Setting({"btl_sm_eager_limit": 65536}), "local", "m",
        {"name": "openmpi", "version": "5.0.8"}, "openmpi", "2026-11-21", "direct", "dataset x",
        gain=0.1, lo=0.05, hi=0.2, evidence=evidence, margin=0.03, not_pruned=("a", "b"),
    )  # fmt: skip
    text = render(Page("t", "", (classwide_section(result),)))
    for word in ("+10.0 %", "cg A 4x", "held out", "btl_sm_eager_limit = 65536", "failed",  # data
                 "3 %", "a, b"):  # fmt: skip
        assert word in text
