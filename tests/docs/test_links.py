"""Links between the pages lead somewhere, and each page says first what it is about."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from docs.builders import EXTERNAL_PAGES

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
EXTERNAL = [ROOT / path for path in EXTERNAL_PAGES.values()]
LINKING = [ROOT / "README.md", *EXTERNAL, *PAGES]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def text_of(page: Path) -> str:
    """A page without its blocks of code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^    .*$", "", text, flags=re.MULTILINE)


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ +(.+?) *$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings() -> None:
    broken = []
    for page in LINKING:
        for name, anchor in LINK.findall(text_of(page)):
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                broken.append(f"{page.relative_to(ROOT)}: {name}#{anchor}")
    assert not broken


def test_the_navigation_names_every_page_once() -> None:
    named = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().split("\nnav:")[1])
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES}
    assert sorted(named) == sorted(pages | set(EXTERNAL_PAGES))


def test_each_page_begins_with_its_subject() -> None:
    others = [
        str(page.relative_to(ROOT))
        for page in (*PAGES, *(page for page in EXTERNAL if page.parent == ROOT))
        if not re.match(r"# [^\n]+\n\nThis page ", page.read_text())
    ]
    assert not others


def test_no_empty_line_cuts_a_table() -> None:
    """Rows without a head are shown as text."""
    cut = re.compile(r"^\|.*\n\n(\|.*)\n(?!\|[-:| ]+\|$)", re.MULTILINE)
    assert cut.search("| a |\n|---|\n| b |\n\n| c |\n")
    assert not cut.search("| a |\n|---|\n| b |\n\n| c |\n|---|\n")
    found = {str(page.relative_to(ROOT)): cut.findall(page.read_text()) for page in LINKING}
    assert not {page: rows for page, rows in found.items() if rows}
