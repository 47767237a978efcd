"""The header of a published file: its origin, how to undo it, and a checksum.

People read the comment lines; autotune reads ``data:`` (JSON). The whole file can be rendered again
from the data, so every other line shows whether it was edited. ``checksum:`` shows it of the data.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import WorkError
from autotune.names import is_file_name, names_path
from autotune.publish.block import BEGIN
from autotune.publish.content import Content, Evidence, comment_text, commutative_part
from autotune.publish.evidence_lines import gain_words
from autotune.wording import UNGUARDED, key_parts
from runner.files.json_text import parse_json
from runner.mpi.library import Library

SCHEMA = 1
_LONGEST = 1500
"""Largest number of characters of a line: Open MPI 5.0 refuses a file with a line above 2,048."""
_DATA = re.compile(r"^\W{0,9}data: (\{.*?)(?: -->)?$")
_MORE = re.compile(r"^\W{0,9}data\+ (.*?)(?: -->)?$")
"""The first line of the data, and a further one."""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True)
class Header:
    """The content of a header.  ``backup`` is the name of the file beside it with the previous
    content, None if there was none."""

    format: str
    cluster: str
    tool: str
    date: str
    mpi: str
    fingerprint: str
    probe: str
    proven: bool
    backup: str | None
    content: Content
    evidence: Evidence
    guards: bool = False
    """Whether the file checks the library's version when it is loaded."""
    makes_folder: bool = False
    """Whether the folder of the file did not exist before."""

    @property
    def family(self) -> str:
        """The family of the library that loads the file."""
        return self.mpi.partition(" ")[0]

    def data(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "format": self.format,
            "cluster": self.cluster,
            "tool": self.tool,
            "date": self.date,
            "mpi": self.mpi,
            "fingerprint": self.fingerprint,
            "probe": self.probe,
            "proven": self.proven,
            "backup": self.backup,
            "content": self.content.to_json(),
            "evidence": self.evidence.to_json(),
            **({"guards": True} if self.guards else {}),
            **({"makes_folder": True} if self.makes_folder else {}),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Header:
        """Inverse of :meth:`data`; raises TypeError, ValueError or KeyError for anything else."""
        values = {k: v for k, v in data.items() if k != "schema"}
        values["content"] = Content.from_json(data["content"])
        values["evidence"] = Evidence.from_json(data["evidence"])
        header = cls(**values)
        _check(header)
        return header

    def lines(self, among_others: bool = False) -> list[str]:
        """The lines of the header without comment characters; the checksum is still blank.

        ``among_others``: lines of others stay in the file.
        """
        evidence = self.evidence
        by_hand = f"put {self.backup} back in its place" if self.backup else "remove this file"
        if among_others:
            by_hand = "take these lines out, from the first mark to the second"
        origin = f"{evidence.source}, {evidence.runs} runs of {', '.join(evidence.programs)}"
        statements = [
            f"autotune {self.tool}, {self.date}, format {self.format}",
            f"cluster: {self.cluster}, fingerprint {self.fingerprint}",
            f"for: {self.mpi}",
            f"evidence: {origin}, {evidence.date}",
            f"{evidence.gain_title}: {gain_words(evidence.gain, evidence.gain_ci)}",
            *([f"checks: {evidence.checked}"] if evidence.checked else []),
            *renewal_lines(evidence.renewed),
            f"setting: {' '.join(key_parts(evidence.setting))}".replace('"', ""),
            f"probe: {self.probe}",
            f"undo: autotune unpublish FILE, or by hand: {by_hand}",
        ]
        if not evidence.proven:
            statements.insert(0, "NOT PROVEN TO BE FASTER, published on demand")
        if evidence.commutative_only and (unsafe := commutative_part(self.content, self.family)):
            statements.insert(
                0,
                "ONLY FOR PROGRAMS WHOSE OPERATIONS ALL COMMUTE (commutative-only), others get "
                f"wrong results: {', '.join(unsafe)}",
            )
        if not evidence.guarded:
            statements.insert(
                0, f"{UNGUARDED.upper()}: other programs may have made the difference"
            )
        if not self.proven:
            statements.insert(0, "UNPROVEN: no library here was seen to obey this file")
        # Characters that could end an HTML comment are written as JSON escapes.
        data_json = json.dumps(self.data(), sort_keys=True, separators=(",", ":"))
        for sign, escape in _ESCAPES.items():
            data_json = data_json.replace(sign, escape)
        comments = [part for line in statements for part in _parts(comment_text(line))]
        first, *more = _parts(data_json)
        return [BEGIN, *comments, f"data: {first}", *(f"data+ {part}" for part in more), BLANK]


def _parts(text: str) -> list[str]:
    """A text as lines that every library reads."""
    return [text[at : at + _LONGEST] for at in range(0, max(len(text), 1), _LONGEST)]


def _data_text(text: str) -> str | None:
    """The JSON of the header in ``text``; None if it has no data."""
    _, _, header = text.partition(BEGIN)
    parts: list[str] = []
    for line in header.splitlines():
        if match := (_MORE if parts else _DATA).search(line):
            parts.append(match[1])
        elif parts:
            break
    return "".join(parts) or None


def series(library: Library) -> str:
    """The versions that a file is for, because versions of one series behave alike."""
    numbers = ".".join(map(str, library.version_tuple[:2]))
    return f"{library.family} {numbers}.x (seen with {library.version})"


def _check(header: Header) -> None:
    """Raise TypeError or ValueError for a value of a wrong type or form.  A header comes from
    outside, and undoing a publication relies on it."""
    evidence, content = header.evidence, header.content
    texts = [header.format, header.cluster, header.tool, header.date, header.mpi, header.probe]
    texts += [
        header.fingerprint,
        header.backup or "",
        *evidence.programs,
        evidence.date,
        evidence.machine,
    ]
    texts += [
        evidence.source,
        evidence.status,
        evidence.setting,
        evidence.mpi_family,
        evidence.mpi_version,
    ]
    texts += [evidence.cluster, evidence.mpi_bin, evidence.over, evidence.checked]
    texts += [*content.groups]
    for values in content.groups.values():
        texts += [word for pair in values.items() for word in pair]
    for rule in content.rules:
        texts += [rule.collective, rule.algorithm]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a value that should be text is not text")
    if header.backup is not None and not is_file_name(header.backup):
        raise ValueError(f"{header.backup!r} is not the name of a backup")
    for cluster in (header.cluster, evidence.cluster):
        if names_path(cluster):  # Cluster definitions contain words for mpirun.
            raise ValueError(f"the cluster {cluster!r:.80} is a path, not a name")
    gains = [evidence.gain, *(evidence.gain_ci or ())]
    numbers = [evidence.runs, *(gain for gain in gains if gain is not None)]
    numbers += [n for r in content.rules for n in (r.comm_size, r.message, r.fanout, r.segment)]
    if not all(isinstance(number, int | float) and abs(number) < 2**63 for number in numbers):
        raise TypeError("a value that should be a number is not a number")
    if not all(isinstance(one, dict) for one in evidence.check):
        raise TypeError("a check is not a table")
    _check_renewal(evidence.renewed)
    flags = (
        header.proven,
        header.guards,
        header.makes_folder,
        evidence.proven,
        evidence.guarded,
        evidence.commutative_only,
    )
    for flag in flags:
        if not isinstance(flag, bool):
            raise TypeError("a flag of the header is neither true nor false")


def renewal_lines(renewal: Mapping[str, Any]) -> list[str]:
    """What a later measurement showed, for the header and for people."""
    if not renewal:
        return []
    head = f"measured again with {renewal['mpi_version']}, {renewal['date']}"
    return [f"{head}: {words}" for words in renewal["words"]]


def _check_renewal(renewal: Any) -> None:
    if not isinstance(renewal, dict):
        raise TypeError("renewed is not a table")
    if not renewal:
        return
    words = renewal["words"]
    texts = [renewal["mpi_version"], renewal["mpi_bin"], renewal["date"]]
    if not isinstance(words, list) or not all(isinstance(text, str) for text in texts + words):
        raise TypeError("a value of renewed that should be text is not text")


def read_header(text: str) -> Header | None:
    """The header in the text of a published file; None if it has none.

    Raises WorkError if the header is damaged.
    """
    if BEGIN not in text:
        return None
    data = _data_text(text)
    try:
        if data is None:
            raise ValueError("its data line is missing")
        return Header.from_data(parse_json(data))
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise WorkError(
            f"the header that autotune wrote into this file is damaged ({problem}); restore it "
            "from its backup (FILE.before-autotune) by hand, or publish again with --force",
            code="published.damaged",
        ) from None


def comment_out(lines: list[str], sign: tuple[str, str]) -> str:
    """The lines as comments: each line between the two comment marks of the format."""
    return "".join(f"{sign[0]}{line}{sign[1]}\n" for line in lines)


BLANK = "checksum: sha256:" + "0" * 64
"""The line of the checksum before the checksum is computed."""
_CHECKSUM = re.compile(r"checksum: sha256:([0-9a-f]{64})")


def seal(text: str) -> str:
    """``text``, a header with what follows it, with its blank checksum filled in.

    The checksum (SHA-256) covers what a rendering takes from the file as it is: the data, and, in a
    file of JSON, whose header lies beside it, all of that file: MPICH's trees are made from the
    library's own, which need not be here.
    """
    head, _, rest = text.partition(BLANK)
    checksum_text = (_data_text(head) or "") + (rest if rest.startswith("\n{") else "")
    digits = hashlib.sha256(checksum_text.encode(errors="surrogateescape")).hexdigest()
    return text.replace(BLANK, f"checksum: sha256:{digits}", 1)


def blank_checksum(text: str) -> str:
    """``text`` with a blank checksum, to compare the other lines only."""
    return _CHECKSUM.sub(BLANK, text, count=1)
