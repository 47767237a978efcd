"""Where the communication time of a traced run went, as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from autotune.terminal.render import table
from autotune.wording import binary, count, share
from runner.trace import Profile, ProfileRow
from runner.trace.schema import SIZE_BINS

LONGEST = 6
"""Number of rows that are shown."""
_WITHOUT_SIZE = ("recv", "wait", "barrier", "rma", "other")
_COLUMNS = ("operation", ">bytes", "partners", ">calls/rank", ">of the run", ">of it waiting")


def profile_table(profile: Profile) -> RenderableType:
    """The rows with the most time, and the sums in a line below; for a profile with rows."""
    communication = profile.communication_s
    run = profile.compute_s + communication
    longest = sorted(profile.rows, key=lambda row: -row.seconds)[:LONGEST]
    rows = [
        [
            f"{row.operation} (non-blocking)" if row.nonblocking else row.operation,
            "-" if row.operation in _WITHOUT_SIZE else _sizes(row.size_bin),
            _partners(row),
            f"{row.calls:.6g}",
            _share(row.seconds, run),
            _share(row.waiting_s, row.seconds),
        ]
        for row in longest
    ]
    words = (
        f"{_share(communication, run)} of the run is communication, "
        f"{_share(profile.waiting_s, communication)} of that is waiting for other ranks"
    )
    return Group(table("where the communication time goes", _COLUMNS, rows), Text(words))


def _share(part: float, whole: float) -> str:
    return share(part / whole) if whole else "-"


def _sizes(size_bin: int) -> str:
    if size_bin < 2:
        return str(size_bin)
    first = 2 ** (size_bin - 1)
    if size_bin == SIZE_BINS - 1:
        return f"from {binary(first)}"
    end = 2 * first
    return f"{first}-{end - 1}" if end <= 1024 else f"{binary(first)}-{binary(end)}"


def _partners(row: ProfileRow) -> str:
    if row.operation == "send":
        return "other node" if row.far else "same node"
    if not row.comm_size:
        return "-"
    return f"{count(row.comm_size, 'rank')}, {'several nodes' if row.far else 'one node'}"
