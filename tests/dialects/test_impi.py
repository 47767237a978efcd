"""Presets of Intel MPI: candidates, and tables as values of I_MPI_ADJUST_*."""

from __future__ import annotations

from pathlib import Path

from autotune.collective_rules import Rule
from autotune.collectives.tournament import TableEntry, as_rules, table_candidates
from autotune.dialects import dialect
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from runner.mpi.library import Library, ParamInfo
from tests.refusals import refused

INTEL = dialect("impi")
BCAST = "I_MPI_ADJUST_BCAST"
LIBRARY = Library(
    "impi", "2021.18.1", "/opt/impi/bin", "/opt/impi/bin/mpirun",
    {BCAST: ParamInfo(BCAST, "int", "", enum={n: str(n) for n in range(4)})},
)  # fmt: skip


def value(*rules: Rule) -> str:
    (found,) = INTEL.variables(rules).values()
    assert found[0] == BCAST
    return found[1]


def test_every_preset_is_a_candidate_but_the_fallback() -> None:
    space = INTEL.space(LIBRARY, "bcast", {"ranks": 2})
    every = table_candidates(space)
    assert [setting[BCAST] for setting in every] == [1, 2, 3]
    rules = as_rules(INTEL, space, "bcast", 2, [TableEntry(8, every[0]), TableEntry(64, every[2])])
    assert rules == [Rule("bcast", 2, 0, "1"), Rule("bcast", 2, 64, "3")]
    assert INTEL.names(LIBRARY, "bcast")["3"] == "preset 3"
    with refused(UsageError, "collectives.no_algorithms"):
        INTEL.space(LIBRARY, "scan", {"ranks": 2})


def test_the_ranges_cover_all_sizes() -> None:
    """The library has no word for its own choice, and uses the nearest range elsewhere."""
    first = (Rule("bcast", 2, 0, "1"), Rule("bcast", 2, 4096, "3"))
    assert value(*first) == "1:0-4095;3:4096-2147483647"
    assert value(*first, *(Rule("bcast", 4, r.message, r.algorithm) for r in first)) == (
        "1:0-4095;3:4096-2147483647"
    )
    with refused(UsageError, "collectives.tables_differ"):
        value(*first, Rule("bcast", 4, 0, "2"))


def test_sizes_cannot_be_left_to_the_library() -> None:
    with refused(UsageError, "collectives.algorithm_unknown"):
        value(Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 64, "1"))
    with refused(UsageError, "collectives.algorithm_unknown"):
        value(Rule("bcast", 2, 0, "1;2"))


def test_a_launch_loads_the_table_as_a_variable(tmp_path: Path) -> None:
    (parameter,) = INTEL.loading([Rule("bcast", 2, 0, "2")], LIBRARY, tmp_path, "bcast-2")
    assert (parameter.name, parameter.levels) == (BCAST, ("2:0-2147483647",))
    assert Setting({BCAST: parameter.levels[0]}) != DEFAULT
    assert not list(tmp_path.iterdir())
