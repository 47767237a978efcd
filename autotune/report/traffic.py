"""The messages between the ranks of a traced program: a matrix, and who sends most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.errors import UsageError
from autotune.report.figures import matrix
from autotune.report.page import PageTable, Section
from autotune.wording import count, size_words

if TYPE_CHECKING:
    from runner.trace import Features

LARGEST_MATRIX = 256
"""Largest number of ranks that are drawn one by one; of more, groups of ranks are."""
TABLE_ROWS = 10
"""Number of pairs in the table."""


def traffic_section(features: Features) -> Section:
    """The section of a page; raises UsageError if the features have no pairs of ranks."""
    partners = features.partners
    if partners is None or not partners.pairs:
        raise UsageError(
            "the features say nothing about the messages between ranks: the program sends none, or "
            "too many pairs do; expected those of a program whose ranks send messages",
            code="page.no_messages",
        )
    group = -(-features.ranks // LARGEST_MATRIX)
    size = -(-features.ranks // group)
    sent = [[0.0] * size for _ in range(size)]
    for pair in partners.pairs:
        sent[pair.sender // group][pair.receiver // group] += pair.bytes
    messages = sum(pair.messages for pair in partners.pairs)
    total = sum(pair.bytes for pair in partners.pairs)
    most = sorted(partners.pairs, key=lambda pair: (-pair.bytes, pair))[:TABLE_ROWS]
    rows = tuple(
        (
            f"{pair.sender} to {pair.receiver}",
            f"{partners.nodes[pair.sender]} to {partners.nodes[pair.receiver]}",
            f"{pair.messages}",
            size_words(pair.bytes),
            f"{pair.bytes / total:.0%}" if total else "-",
        )
        for pair in most
    )
    each = "" if group == 1 else f"; a row or column is {group} ranks"
    sentence = (
        f"{count(len(partners.pairs), 'pair')} of {features.ranks} ranks sent "
        f"{count(messages, 'message')}, {size_words(total)}. Between nodes went "
        f"{partners.far(partners.nodes):.0%} of the messages."
    )
    title = f"Bytes that each rank sends to each other one{each}"
    return Section(
        "Messages between ranks",
        words=(sentence,),
        figures=(matrix(title, "receiving rank", "sending rank", sent, group),),
        tables=(
            PageTable(
                "Pairs that send most",
                ("ranks", "nodes", ">messages", ">bytes", ">share"),
                rows,
            ),
        ),
    )
