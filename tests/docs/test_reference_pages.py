"""The generated pages of the reference are those that the code makes now."""

from __future__ import annotations

import tomllib

from docs.builders import reference_pages
from tests.case_table import case_table


@case_table("name", reference_pages.PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    present = (reference_pages.FOLDER / name).read_text(encoding="utf-8")
    made = reference_pages.PAGES[name]()
    assert present == made, "write it anew: python -m docs.builders"


def test_every_command_has_a_section() -> None:
    page = reference_pages.command_line()
    for command in ("search", "space discover", "cluster split", "evaluate predict"):  # data
        assert f"\n## autotune {command}\n" in page


def test_every_shipped_space_has_its_parameters() -> None:
    page = reference_pages.parameters()
    for path in (reference_pages.ROOT / "configs" / "spaces").glob("*.toml"):
        section = page.split(f"\n## {path.stem}\n")[1].split("\n## ")[0]
        own = tomllib.loads(path.read_text()).get("parameters", {})
        rows = [line for line in section.splitlines() if line.startswith("| `")]
        assert [row.split("`")[1] for row in rows] == list(own)


def test_text_with_signs_of_a_table_stays_in_its_cell() -> None:
    assert reference_pages.cell("a|b [bold]c[/bold]\n  <d>_e*") == r"a\|b c &lt;d>\_e\*"
