"""The messages between the ranks of a traced program: a matrix, and who sends most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.errors import UsageError
from autotune.report.figures import matrix
from autotune.report.page import PageTable, Section
from autotune.wording import count, size_words

if TYPE_CHECKING:
    from runner.trace import Features
    from runner.trace.partners import Partners

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
    return messages_section("Messages between ranks", partners, "nodes")


def messages_section(heading: str, partners: Partners, word: str) -> Section:
    """The section of pairs of ranks with messages; ``word`` for their places: nodes, processes."""
    pairs, places = partners.pairs, partners.nodes
    ranks = len(places)
    group = -(-ranks // LARGEST_MATRIX)
    size = -(-ranks // group)
    sent = [[0.0] * size for _ in range(size)]
    for pair in pairs:
        sent[pair.sender // group][pair.receiver // group] += pair.bytes
    messages = sum(pair.messages for pair in pairs)
    total = sum(pair.bytes for pair in pairs)
    most = sorted(pairs, key=lambda pair: (-pair.bytes, pair))[:TABLE_ROWS]
    rows = tuple(
        (
            f"{pair.sender} to {pair.receiver}",
            f"{places[pair.sender]} to {places[pair.receiver]}",
            f"{pair.messages}",
            size_words(pair.bytes),
            f"{pair.bytes / total:.0%}" if total else "-",
        )
        for pair in most
    )
    each = "" if group == 1 else f"; a row or column is {group} ranks"
    sentence = (
        f"{count(len(pairs), 'pair')} of {ranks} ranks sent {count(messages, 'message')}, "
        f"{size_words(total)}. Between {word} went "
        f"{partners.far(places):.0%} of the messages."
    )
    title = f"Bytes that each rank sends to each other one{each}"
    return Section(
        heading,
        words=(sentence,),
        figures=(matrix(title, "receiving rank", "sending rank", sent, group),),
        tables=(
            PageTable(
                "Pairs that send most",
                ("ranks", word, ">messages", ">bytes", ">share"),
                rows,
            ),
        ),
    )
