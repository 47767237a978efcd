"""The protocols of UCX by message size, from the tables that UCX writes with ``UCX_PROTO_INFO``.

UCX chooses a protocol for each kind of connection (within a node, between nodes), operation and
message size: eager (copied at once) or rendezvous (announced first, then read, written or copied).
It writes a table when the first connection of a kind is made, and writes nothing later::

    | ucp_context_0 intra-node cfg#1 | tagged message by ucp_tag_send* from host memory        |
    |                          0..92 | eager short                               | sysv/memory |
    |                      5029..inf | (?) rendezvous zero-copy read from remote | cma/memory  |

UCX_PROTO_ENABLE=n has no tables: there the thresholds are fixed numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_HEADER = re.compile(r"\| *(?:\S+ )?(intra-node|inter-node) cfg#\d+ *\| *(.*?) *\|\s*$")
_ROW = re.compile(
    r"\| *([0-9]{1,19}[KMGT]?)(?:\.\.([0-9]{1,19}[KMGT]?|inf))? *\| *(?:\(\?\) *)?(.*?) *\|.*\|\s*$"
)
_OTHER = re.compile(r"\| *\S+ (?:self|intra-node|inter-node) cfg#")
_CALLS = {
    "tagged message by ucp_tag_send*(fast-completion) from host memory": "MPI_Send",
    "tagged message by ucp_tag_send* from host memory": "MPI_Isend",
    "remote memory write by ucp_put* from host memory to host": "MPI_Put",
    "remote memory read by ucp_get* into host memory from host": "MPI_Get",
}
"""Operations of UCX, and the MPI call for which ``pml/ucx`` and ``osc/ucx`` use each.

Their variants for several messages (``multi``) are used only with ``pml_ucx_multi_send_nb``.
"""
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
_NODES = {"intra-node": "within a node", "inter-node": "between nodes"}
_RENDEZVOUS = "rendezvous"


@dataclass(frozen=True)
class SizeRange:
    """The protocol of messages of ``first`` to ``last`` bytes; ``last`` is None if unbounded."""

    first: int
    last: int | None
    protocol: str

    def __str__(self) -> str:
        end = "" if self.last is None else str(self.last)
        return f"{self.first}..{end} {self.protocol}"


Table = tuple[SizeRange, ...]
Tables = Mapping[str, tuple[Table, ...]]
"""The distinct tables of each call, by names such as ``MPI_Send within a node``."""


def parse_tables(texts: Iterable[str]) -> dict[str, tuple[Table, ...]]:
    """The tables in the logs of several ranks, one text for each; other lines are skipped.

    Equal tables are listed once. There are several if ranks differ, or if a rank has several kinds
    of connections.
    """
    tables: dict[str, dict[Table, None]] = {}
    for text in texts:
        for name, rows in _tables_of(text):
            tables.setdefault(name, {})[rows] = None
    return {name: tuple(tables[name]) for name in sorted(tables)}


def _tables_of(text: str) -> Iterable[tuple[str, Table]]:
    name, rows = "", list[SizeRange]()
    for line in text.splitlines():
        if (header := _HEADER.search(line)) or _OTHER.search(line):
            if rows:
                yield name, tuple(rows)
            call = _CALLS.get(header[2], "") if header else ""
            name, rows = f"{call} {_NODES[header[1]]}" if header and call else "", []
        elif name and (row := _ROW.search(line)):
            last = row[2] or row[1]
            end = None if last == "inf" else _bytes(last)
            rows.append(SizeRange(_bytes(row[1]), end, row[3]))
    if rows:
        yield name, tuple(rows)


def _bytes(text: str) -> int:
    unit = _UNITS.get(text[-1])
    return int(text) if unit is None else int(text[:-1]) << unit


def table_words(tables: Iterable[Table]) -> str:
    """The ranges in words: ``0..92 eager short, 93..5028 eager copy-in copy-out, 5029.. ...``.

    Several tables are separated by `` | ``.
    """
    return " | ".join(", ".join(map(str, rows)) for rows in tables)


def rendezvous_from(tables: Tables) -> dict[str, str]:
    """The size in bytes from which each two-sided call announces its messages, by call.

    ``never`` if its table has no such range; several tables are separated by `` | ``.
    """
    return {
        name: " | ".join(dict.fromkeys(_first_rendezvous(rows) for rows in tables[name]))
        for name in tables
        if name.startswith(("MPI_Send", "MPI_Isend"))
    }


def _first_rendezvous(rows: Table) -> str:
    return next((str(r.first) for r in rows if r.protocol.startswith(_RENDEZVOUS)), "never")
