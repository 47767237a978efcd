"""Pages: nothing from elsewhere, nothing unescaped."""

from __future__ import annotations

from html.parser import HTMLParser

from autotune.report.page import Copy, Page, PageTable, Section, render

EVIL = '<script>alert("x")</script>&"\''


def page(text: str) -> str:
    table = PageTable(text, (text, f">{text}"), ((text, text),))
    copy = Copy(text, text)
    section = Section(text, text, (text,), (copy,), (text,), ("<svg></svg>",), (table,))
    return render(Page(text, text, (section, section, section), text))


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_word_is_escaped() -> None:
    plain, evil = Seen(), Seen()
    plain.feed(page("zebra"))
    evil.feed(page(EVIL))
    assert evil.tags == plain.tags
    assert evil.text.count(EVIL) == plain.text.count("zebra") > 20


def test_it_needs_nothing_from_elsewhere() -> None:
    seen = Seen()
    text = page("zebra")
    seen.feed(text)
    assert all(address.startswith("#") for address in seen.addresses)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "color-scheme: light dark" in text  # data
