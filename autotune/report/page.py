"""A self-contained HTML page: it loads nothing, is light or dark, and escapes all text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

PARTS = "autotune.report"
"""The package with the templates, the style and the script of sections."""


def part(name: str) -> str:
    """The text of a file beside this module, such as ``sections.css``."""
    return files(PARTS).joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Copy:
    """Lines for the reader to copy."""

    title: str
    text: str


@dataclass(frozen=True)
class PageTable:
    """A table of text; a column whose name begins with ">" holds numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """One part of a page, its fields in the order of the page.  ``figures`` are SVG text from
    :mod:`autotune.report.figures`."""

    title: str
    verdict: str = ""
    words: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()


@dataclass(frozen=True)
class Page:
    """A page: title, a line below it, the sections, and a footer with the origin."""

    title: str
    subtitle: str
    sections: tuple[Section, ...] = field(default_factory=tuple)
    footer: str = ""


def render(page: Page) -> str:
    """The page as HTML. Only the figures, which this package draws itself, are not escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(PARTS, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    script = part("copy.js")
    digest = hashlib.sha256(script.encode()).digest()
    return environment.get_template("page.html").render(
        page=page,
        style=part("sections.css"),
        script=script,
        script_hash=base64.b64encode(digest).decode(),
    )


def drawn_page(title: str, words: Sequence[str], drawings: Sequence[str]) -> str:
    """A page of a few sentences and figures, as HTML."""
    return render(Page(title, "", (Section("", words=tuple(words), figures=tuple(drawings)),)))
