"""Reads environment variables back from the ranks.

On this machine /proc shows the environment of each rank. Ranks on other machines report their
variables themselves: each starts with a shell line that writes them to standard error, which the
launcher forwards, and then becomes the program. The nodes need no file and no library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runner.mpi.abi import LOADER_PATH
from runner.supervise import RankSnapshot
from runner.types import LaunchSpec, ReadBack

MARK = "autotune-variable"
"""The word in each line of such a report; the supervisor keeps these lines separately."""
SOURCE = "environment of the ranks"
REPORT_SOURCE = "environment that the ranks reported"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The last word marks a complete line, and keeps blanks at the end of a value.
_LINE = re.compile(MARK + r" ([0-9]{1,9}) ([A-Za-z_][A-Za-z0-9_]{0,255})(?:=(.*))? end$")

Reports = dict[int, dict[str, str | None]]
"""Rank -> variable -> value, None if it is not set."""


def asked_variables(spec: LaunchSpec) -> dict[str, str]:
    """The variables that every rank should have."""
    return spec.variables | spec.expected_variables


def with_variable_report(spec: LaunchSpec, rank_variables: Sequence[str]) -> LaunchSpec:
    """The launch with ranks that report the variables it sets.

    The first set one of ``rank_variables`` holds a process's rank. The report is one write, so that
    the lines of a rank stay whole.
    """
    names = [n for n, value in asked_variables(spec).items() if _reportable(n, value)]
    if not names or not spec.read_back or not rank_variables:
        return spec
    first, *others = (f"${{{name}-" for name in rank_variables)
    rank = first + "".join(others) + "}" * len(rank_variables)
    lines = " ".join(f'"{MARK} {rank} {name}${{{name}+=}}${{{name}-}} end"' for name in names)
    script = f"printf '%s\\n' {lines} >&2; exec \"$@\""
    return replace(spec, program=("/bin/sh", "-c", script, "sh", *spec.program))


def _reportable(name: str, value: str) -> bool:
    """True if a shell line can report a variable: values with line ends are left out."""
    return _NAME.fullmatch(name) is not None and "\n" not in value


def reports_of(lines: Iterable[str]) -> Reports:
    """The variables in the reports of the ranks; incomplete lines are left out."""
    reports: Reports = {}
    for line in lines:
        if whole := _LINE.search(line):
            reports.setdefault(int(whole[1]), {})[whole[2]] = whole[3]
    return reports


def read_back_variables(
    requests: Mapping[str, str],
    ranks: Sequence[RankSnapshot],
    reports: Reports | None = None,
    number: int = 0,
) -> dict[str, ReadBack]:
    """State of each requested variable in ``ranks`` (the ranks that were seen) or in ``reports``.

    ``in force``: every rank was started with the value, even if the program or the library does not
    use it. ``altered``: a rank has another value or none. If not all of the ``number`` ranks
    reported it, and no ranks were seen (they are on other nodes, or ended too early), the state is
    ``not observable``.
    """
    return {n: _state(n, value, ranks, reports or {}, number) for n, value in requests.items()}


def _state(
    name: str, value: str, ranks: Sequence[RankSnapshot], reports: Reports, number: int
) -> ReadBack:
    reported_values = [report[name] for report in reports.values() if name in report]
    if reported_values and len(reported_values) == number:
        return _judge(name, value, set(reported_values), REPORT_SOURCE)
    if ranks:
        return _judge(name, value, {rank.variables.get(name) for rank in ranks}, SOURCE)
    few = f"{len(reported_values)} of {number} ranks reported it" if reports else None
    return ReadBack("not observable", value, None, few)


def _judge(name: str, value: str, values: set[str | None], source: str) -> ReadBack:
    text = " | ".join(sorted("(not set)" if one is None else one for one in values))
    is_in_force = all(one is not None and _has_value(name, one, value) for one in values)
    return ReadBack("in force" if is_in_force else "altered", value, text, source)


def _has_value(name: str, actual: str, value: str) -> bool:
    """Whether a rank has the value; launchers put folders of their own first in the loader's."""
    return actual == value or (name == LOADER_PATH and actual.endswith(f":{value}"))
