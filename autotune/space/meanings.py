"""Equivalent parameters of different MPI libraries.

The table serves one purpose: a setting proven under one library is worth trying under another. It
says nothing about the effect there, so a translated setting only starts a search and is never a
result. Numbers of algorithms are those of Open MPI's coll/tuned and of Intel's reference of
I_MPI_ADJUST; MPICH has names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.space.setting import Setting, Value
from autotune.space.space import Space

FAMILIES = ("openmpi", "mpich", "impi")
"""The order of the columns below."""
_FAR = math.log(4)
"""A number is moved to the nearest level of the other space within this factor."""
Row = tuple[Value | None, ...]


@dataclass(frozen=True)
class Meaning:
    """The meaning of a parameter: its name in each family, and its equivalent values.

    Without ``rows`` the values are numbers of one unit, the same in all families.
    """

    about: str
    names: tuple[str | None, ...]
    rows: tuple[Row, ...] = ()

    def name(self, family: str) -> str | None:
        return self.names[FAMILIES.index(family)] if family in FAMILIES else None

    def value(self, value: Value, source: str, target: str) -> Value | None:
        """The value in the family ``target`` for a value of ``source``; None if there is none."""
        if not self.rows:
            return value
        one, other = FAMILIES.index(source), FAMILIES.index(target)
        return next((row[other] for row in self.rows if row[one] == value), None)


def algorithm_of(collective: str) -> Meaning | None:
    """The meaning of a collective's algorithm; None if it is not in the table."""
    about = _about(collective)
    return next((meaning for meaning in MEANINGS if meaning.about == about), None)


def _about(collective: str) -> str:
    return f"algorithm of {collective}"


def _algorithm(collective: str, *rows: Row) -> Meaning:
    upper = collective.upper()
    names = (
        f"coll_tuned_{collective}_algorithm",
        f"MPIR_CVAR_{upper}_INTRA_ALGORITHM",
        f"I_MPI_ADJUST_{upper}",
    )
    return Meaning(_about(collective), names, rows)


_SCATTER_DOUBLING, _SCATTER_RING = "scatter_recursive_doubling_allgather", "scatter_ring_allgather"
MEANINGS = (
    _algorithm(
        "bcast",
        (6, "binomial", 1),
        (7, "tree", 8),
        (3, "pipelined_tree", None),
        (8, _SCATTER_DOUBLING, 2),
        (9, _SCATTER_RING, 3),
    ),
    _algorithm(
        "allreduce",
        (3, "recursive_doubling", 1),
        (6, "reduce_scatter_allgather", 2),
        (4, "ring", 8),
        (5, "ring", 8),
        (2, None, 3),
    ),
    _algorithm("reduce", (5, "binomial", 2), (7, "reduce_scatter_gather", 5)),
    _algorithm("alltoall", (3, "brucks", 1), (1, "scattered", 2), (2, "pairwise", 3)),
    _algorithm("allgather", (3, "recursive_doubling", 1), (2, "brucks", 2), (4, "ring", 3)),
    _algorithm("barrier", (4, "k_dissemination", 1), (3, "recexch", 2), (4, "dissemination", 1)),
    _algorithm("gather", (2, "binomial", 1)),
    _algorithm("scatter", (2, "binomial", 1)),
    _algorithm("reduce_scatter", (2, "recursive_halving", 1), (3, "pairwise", 2)),
    Meaning(
        "largest message that is copied at once",
        (
            "btl_sm_eager_limit",
            "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE",
            "I_MPI_SHM_EAGER_THRESHOLD",
        ),
    ),
    Meaning(
        "the kernel's single copy",
        ("smsc", "MPIR_CVAR_CH4_CMA_ENABLE", "I_MPI_SHM_CMA"),
        (("^cma", 0, 0),),
    ),
    Meaning(
        "from which size on single copy is used",
        (None, "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD", "I_MPI_SHM_CMA_THRESHOLD"),
    ),
    Meaning(
        "messages within a node through UCX",
        ("pml", "MPIR_CVAR_NOLOCAL", None),
        (("ucx", 1, None),),
    ),
    Meaning(
        "a waiting rank gives the processor away at once",
        ("mpi_yield_when_idle", "MPIR_CVAR_POLLS_BEFORE_YIELD", "I_MPI_THREAD_YIELD"),
        ((1, 1, 2),),
    ),
)
_FORMER = {"btl_vader_": "btl_sm_"}
"""Names of Open MPI 4.1 -> names of 5, which the table uses."""
_FORMER_VALUES = {("btl_vader_single_copy_mechanism", "none"): ("smsc", "^cma")}


@dataclass(frozen=True)
class TranslatedSetting:
    """A setting translated to another space, and the names without a translation."""

    setting: Setting
    left_out: tuple[str, ...] = ()


def translate(
    setting: Mapping[str, Value], source: str, space: Space, target: str
) -> TranslatedSetting:
    """``setting``, proven under the family ``source``, translated to ``space`` (of ``target``).

    Names that the space shares (placement, environment, program options) stay. A number becomes the
    nearest level of the space. Names without a counterpart and values that the space does not allow
    are left out.
    """
    values: dict[str, Value] = {}
    left_out: list[str] = []
    for name, value in setting.items():
        pair = _pair(name, value, source, target)
        native = "" if pair is None else space.aliases.get(pair[0], pair[0])
        near = None if native not in space or pair is None else _level(space, native, pair[1])
        if near is None or space.violations(Setting({**values, native: near}), grid=True):
            left_out.append(name)
        else:
            values[native] = near
    return TranslatedSetting(space.canonical(Setting(values)), tuple(left_out))


def _pair(name: str, value: Value, source: str, target: str) -> tuple[str, Value] | None:
    """Name and value in the other family; None without a translation."""
    if source == target:
        return name, value
    if source == FAMILIES[0]:
        name, value = _FORMER_VALUES.get((name, str(value)), (name, value))
        for former, today in _FORMER.items():
            name = today + name.removeprefix(former) if name.startswith(former) else name
    for meaning in MEANINGS:
        if meaning.name(source) == name and (other := meaning.name(target)) is not None:
            translation = meaning.value(value, source, target)
            if translation is not None:
                return other, translation
    has_meaning = any(meaning.name(source) == name for meaning in MEANINGS)
    return None if has_meaning else (name, value)


def _level(space: Space, name: str, value: Value) -> Value | None:
    """The level of a parameter nearest to a value; None if none is near."""
    parameter = space[name]
    value = parameter.normalise(value)
    if parameter.problem(value) is None or isinstance(value, str):
        return value if parameter.problem(value) is None else None
    numbers = [level for level in parameter.levels if not isinstance(level, str) and level > 0]
    if not numbers or value <= 0:
        return None
    near = min(numbers, key=lambda level: abs(math.log(level / value)))
    return near if abs(math.log(near / value)) <= _FAR else None
