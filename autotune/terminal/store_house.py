"""Terminal output of the check, the pruning and the backup of a results database."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from autotune.terminal.message import fold
from autotune.terminal.render import WIDTH, print_line, print_table, width
from autotune.wording import count, size_words

if TYPE_CHECKING:
    from autotune.api.store_backup import StoreBackup
    from autotune.api.store_check import StoreCheck
    from autotune.api.store_prune import StorePrune

_SHOWN = 5
"""Findings of one code that are printed; the document has all."""


def print_check(check: StoreCheck) -> None:
    """Print each finding, with what to do after the last one of a kind, and what was looked at."""
    numbers = Counter(finding.code for finding in check.findings)
    printed: Counter[str] = Counter()
    advice = ""
    for finding in check.findings:
        printed[finding.code] += 1
        if printed[finding.code] > _SHOWN:
            if printed[finding.code] == numbers[finding.code]:
                rest = numbers[finding.code] - _SHOWN
                print_line(f"[{finding.code}] {count(rest, 'further finding')}: --json - has all")
            continue
        if advice not in ("", finding.advice):
            _print_folded(f"    -> {advice}")
        _print_folded(f"[{finding.code}] {finding.words}")
        advice = finding.advice
    if advice:
        _print_folded(f"    -> {advice}")
    looked = f"{check.database}: "
    if check.studies is not None and check.runs is not None:
        looked += f"{_studies(check.studies)}, {count(check.runs, 'run')}, "
    findings = count(len(check.findings), "finding") if check.findings else "nothing wrong"
    print_line(f"{looked}{count(check.published, 'published file')}: {findings}", whole=True)


def _print_folded(text: str) -> None:
    """Print a sentence; its further lines are indented, and paths and commands are not broken."""
    indent = "       " if text.startswith(" ") else "    "
    head, body = text[: len(text) - len(text.lstrip())], text.lstrip()
    lines = fold(body, (width() or WIDTH) - len(indent)).split("\n")
    print_line(head + f"\n{indent}".join(lines), whole=True)


def _studies(number: int) -> str:
    return f"{number} {'study' if number == 1 else 'studies'}"


def print_prune(prune: StorePrune) -> None:
    """Print what goes or has gone, by study, and what stays because of what rests on it."""
    if prune.studies:
        rows = [
            [row.hash[:8], row.app, str(row.rejected), str(row.outputs), size_words(row.bytes)]
            for row in prune.studies
        ]
        print_table("", ["study", "app", ">rejected runs", ">outputs", ">bytes"], rows)
    verb = "gone" if prune.done else "would go"
    rejected = sum(row.rejected for row in prune.studies)
    outputs = sum(row.outputs for row in prune.studies)
    gone = f"{count(rejected, 'rejected run')}, outputs of {count(outputs, 'run')}"
    print_line(f"{verb}, {size_words(prune.bytes)}: {gone}, {prune.unnamed} that no run names")
    spared = prune.left
    print_line(
        f"left alone: {_studies(spared.published)} on which a published file rests, "
        f"{spared.unfinished} unfinished"
    )
    if not prune.keep:
        print_line("without --keep only outputs that no run names go")
    if prune.file_bytes is not None and prune.file_bytes_after is not None:
        before, after = size_words(prune.file_bytes), size_words(prune.file_bytes_after)
        print_line(f"the file: {before} before, {after} now")
        if not prune.compacted:
            print_line(
                "it was not made smaller, because others write or the disk is full; later runs "
                "use the space, and the next prune tries again"
            )
    if not prune.done:
        print_line("nothing was changed; --yes removes it")


def print_backup(backup: StoreBackup) -> None:
    """Print where the backup is, how it was made, and how it is read."""
    if backup.command:
        print_line(f"ran {shlex.join(backup.command)}", whole=True)
    print_line(f"wrote {backup.path}: {size_words(backup.bytes)}", whole=True)
    print_line(f"to {'restore' if backup.command else 'read'} it:  {backup.restore}", whole=True)
