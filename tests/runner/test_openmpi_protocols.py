"""The protocols of UCX by message size, from its tables."""

from __future__ import annotations

from runner.mpi.openmpi.protocols import parse_tables, rendezvous_from, table_words
from tests.case_table import case_table

AT = "[1795472816.485829] [vm:6289 :0]   "
TABLES = "".join(
    f"{AT}{line}\n"
    for line in (
        "| ucp_context_0 self cfg#0 | tagged message by ucp_tag_send* from host memory      |",
        "|                0..2284 | eager short                             | self/memory |",
        "+--------------------------------+-----------------------------------------------+",
        "| ucp_context_0 intra-node cfg#1 | tagged message by ucp_tag_send* from host memory |",
        "+--------------------------------+-----------------------------------------------+",
        "|                          0..92 | eager short                     | sysv/memory |",
        "|                       93..5028 | eager copy-in copy-out          | sysv/memory |",
        "|         5029..inf | (?) rendezvous zero-copy read from remote    | cma/memory  |",
        "+--------------------------------+-----------------------------------------------+",
        "|c intra-node cfg#1 | tagged message by ucp_tag_send*(fast-completion) from host memory |",
        "|                      0..262143 | multi-frag eager copy-in copy-out | sysv/memory |",
        "|                      256K..inf | (?) rendezvous zero-copy read from remote | cma/x |",
        "| ucp_context_0 intra-node cfg#1 | tagged message by ucp_tag_send*(multi) from host |",
        "|                         0..inf | eager short                     | sysv/memory |",
        "| ucp_context_1 intra-node cfg#0 | fetching atomic by ucp_atomic_op* into host memory |",
        "|                              4 | atomic fetch                    | self/memory |",
        "| c inter-node cfg#0 | remote memory write by ucp_put* from host memory to host    |",
        "|                              0 | short                           | tcp/eth0 |",
        "|                         1..inf | zero-copy       | 50% on tcp/eth0 and 50% on tcp/b |",
    )
)


def test_tables_are_read_by_call_and_kind_of_connection() -> None:
    found = parse_tables([TABLES, TABLES])
    assert {name: table_words(tables) for name, tables in found.items()} == {
        "MPI_Isend within a node": (
            "0..92 eager short, 93..5028 eager copy-in copy-out, "
            "5029.. rendezvous zero-copy read from remote"
        ),
        "MPI_Put between nodes": "0..0 short, 1.. zero-copy",
        "MPI_Send within a node": (
            "0..262143 multi-frag eager copy-in copy-out, "
            "262144.. rendezvous zero-copy read from remote"
        ),
    }


def test_ranks_that_differ_have_a_table_each() -> None:
    other = TABLES.replace("93..5028", "93..99").replace("5029..inf", "100..inf")
    name = "MPI_Isend within a node"
    tables = parse_tables([TABLES, other])
    assert len(tables[name]) == 2
    assert rendezvous_from(tables)[name] == "5029 | 100"


def test_a_call_without_rendezvous_never_announces() -> None:
    eager = TABLES.replace("rendezvous", "eager")
    assert set(rendezvous_from(parse_tables([eager])).values()) == {"never"}


@case_table(
    "text",
    [
        "",
        "\0|",
        "|  0..92 | eager short | x |",
        "| a intra-node cfg#1 | no such call |\n| 1 | a | b |",
    ],
)
def test_other_text_has_no_tables(text: str) -> None:
    assert parse_tables([text]) == {}
