"""The table of layers on the page of the design is the one that is checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_has_the_layers_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [
        package.removeprefix("autotune.")
        for layer in contracts["contracts"][0]["layers"]
        for package in layer.split(" | ")
    ]
    page = (ROOT / "docs" / "explanation" / "design.md").read_text()
    table = page.split("| layer | packages | knows |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| [\w ]+ \| (`[^|]+`) \|", table, re.MULTILINE)
    assert [package for row in rows for package in re.findall(r"`(\w+)`", row)] == layers
    folders = {path.stem for path in (ROOT / "autotune").glob("[a-z]*")}
    assert folders - {"py"} <= {*layers, "_data"}
