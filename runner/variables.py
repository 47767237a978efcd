"""Reads environment variables back from the ranks, as /proc shows the environment of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.supervise import RankSeen
from runner.types import ReadBack

SOURCE = "environment of the ranks"


def read_back_variables(asked: Mapping[str, str], ranks: Sequence[RankSeen]) -> dict[str, ReadBack]:
    """State of each requested variable in ``ranks``, the ranks that were seen.

    ``in force``: every rank was started with the value. This says that the variable is set, not
    that the program or the library uses it. ``altered``: a rank has another value or none. If no
    ranks were seen (they are on other nodes, or ended too early), the state is ``not observable``.
    """
    return {name: _state(name, value, ranks) for name, value in asked.items()}


def _state(name: str, value: str, ranks: Sequence[RankSeen]) -> ReadBack:
    if not ranks:
        return ReadBack("not observable", value)
    found = {rank.variables.get(name) for rank in ranks}
    if found == {value}:
        return ReadBack("in force", value, value, SOURCE)
    shown = " | ".join(sorted("(not set)" if one is None else one for one in found))
    return ReadBack("altered", value, shown, SOURCE)
