"""Rank files that are missing, cut off or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.trace.counts import (
    FORMAT,
    OPERATIONS,
    RowKind,
    parse_counts,
    read_ranks,
)
from runner.trace.schema import SIZE_BINS
from tests.case_table import case_table
from tests.refusals import refused


def text(rank: int = 0, size: int = 2) -> str:
    sizes = " ".join(["0"] * (SIZE_BINS - 1) + ["2"])
    lines = [FORMAT, f"rank {rank}", f"size {size}", "host a node", "wall_ns 7", "outside 1"]
    lines += [f"op {name} 1 2 3 4 5" for name in OPERATIONS]
    lines += [f"p2p_sizes {sizes}", f"coll_sizes {sizes}", "to 1 1 30"]
    lines += ["row scan 0 2 4 0 1 3 5", "row send 1 25 0 1 1 40 5", "end"]
    return "\n".join(lines) + "\n"


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "rank-0"
    path.write_text(text())
    found = parse_counts(path)
    assert (found.rank, found.size, found.host, found.wall_ns) == (0, 2, "a node", 7)
    assert (found.messages, found.outside, found.to) == (2, 1, {1: (1, 30)})
    op = found.ops["scan"]
    assert (op.calls, op.nonblocking, op.bytes, op.comm_sizes, op.ns) == (1, 2, 3, 4, 5)
    assert found.rows == {
        RowKind("scan", False, 2, 4, False): (1, 3, 5),
        RowKind("send", True, 25, 0, True): (1, 40, 5),
    }


def test_the_timed_part(tmp_path: Path) -> None:
    path = tmp_path / "rank-0"
    path.write_text(text())
    assert parse_counts(path).timed_calls == {}
    path.write_text(text().replace("p2p_sizes", "timed scan 1\ntimed send 0\np2p_sizes"))
    assert parse_counts(path).timed_calls == {"scan": 1, "send": 0}


@pytest.mark.parametrize("lines", [0, 1, 5, -1])
def test_a_rank_without_finalize(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "rank-0"
    path.write_text("\n".join(text().splitlines()[:lines]))
    with refused(RunnerError, "trace.no_counts"):
        parse_counts(path)


@case_table(
    ("old", "new"),
    [
        ("op scan 1 2 3 4 5", "op scan 1 2 3"),
        ("op scan 1 2 3 4 5", "op scam 1 2 3 4 5"),
        ("op scan 1 2 3 4 5", "nonsense"),
        ("wall_ns 7", "wall_ns soon"),
        ("to 1 1 30", "to 1 1"),
        ("p2p_sizes 0", "p2p_sizes"),
        ("size 2\n", ""),
        ("row scan 0 2 4 0 1 3 5", "row scan 0 2 4 0 1 3"),
        ("row scan 0 2 4 0 1 3 5", "row scan 0 2 4 0 1 3 5 6"),
        ("row scan 0 2", "row scam 0 2"),
        ("row scan 0 2", "row scan 2 2"),
        ("row scan 0 2", "row scan 0 26"),
        ("row scan 0 2 4 0", "row scan 0 2 -4 0"),
        ("row scan 0 2 4 0", "row scan 0 2 4 2"),
        ("row scan 0 2 4 0 1 3 5", "row scan 0 2 4 0 1 3 -5"),
        ("row send 1 25 0 1 1 40 5", "row scan 0 2 4 0 1 3 5"),
        ("row scan 0 2", "row scan 0 many"),
    ],
)
def test_a_damaged_file(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "rank-0"
    assert old in text()
    path.write_text(text().replace(old, new, 1))
    with pytest.raises(RunnerError, match="damaged"):
        parse_counts(path)


def test_a_file_of_the_format_before(tmp_path: Path) -> None:
    path = tmp_path / "rank-0"
    path.write_text(text().replace(FORMAT, "autotune-trace 0"))
    with refused(RunnerError, "trace.no_counts"):
        parse_counts(path)


def test_ranks_that_left_nothing(tmp_path: Path) -> None:
    with refused(RunnerError, "trace.no_counts"):
        read_ranks(tmp_path, 2)
    (tmp_path / "rank-0").write_text(text())
    with refused(RunnerError, "trace.no_counts"):
        read_ranks(tmp_path, 2)


def test_ranks_of_another_world(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank-{rank}").write_text(text(rank, 1))
    with refused(RunnerError, "trace.no_counts"):
        read_ranks(tmp_path, 2)
