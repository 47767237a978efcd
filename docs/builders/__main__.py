"""Writes the pages and figures that are made from the code: ``python -m docs.builders``."""

from __future__ import annotations

from docs.builders import PAGES, constants, reference_pages

reference = {reference_pages.FOLDER / name: make for name, make in reference_pages.PAGES.items()}
for page in PAGES:
    present = page.read_text(encoding="utf-8")
    text = reference[page]() if page in reference else constants.inject(present)
    if text != present:
        page.write_text(text, encoding="utf-8")
        print(page)
