"""The documentation as one site: every link holds, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from docs.builders import EXTERNAL_PAGES, site
from tests.started import rank_environment

ROOT = Path(__file__).parents[2]
FOREIGN = re.compile(
    r"""(?:\bsrc|\bsrcset|<link[^>]*\bhref)=["'](?:https?:)?//|url\(["']?https?:|@import"""
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [".ci/docs", str(folder)],
        cwd=ROOT, env=rank_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(built: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {Path(place) for place in EXTERNAL_PAGES}
    made = {path.relative_to(built) for path in built.rglob("*.html")}
    assert {page.with_suffix(".html") for page in pages} <= made
    assert Path("api/autotune.html") in made
    assert not [page for page in made if "<!-- = " in (built / page).read_text(encoding="utf-8")]


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    foreign = {
        path.name: found[0]
        for path in built.rglob("*")
        if path.suffix in {".html", ".css", ".svg"}
        and (found := FOREIGN.search(path.read_text(encoding="utf-8")))
    }
    assert not foreign
    # The theme loads a foreign script for such diagrams, and only for them.
    assert not [p for p in built.rglob("*.html") if 'class="mermaid"' in p.read_text()]


@pytest.mark.parametrize(
    "text", ["[no page](other.md)", "[no heading](index.md#nowhere)", "[absolute](/index.md)"]
)
def test_a_broken_link_ends_the_build(tmp_path: Path, text: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\nThis page has a link: {text}\n")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        nav=None,
        hooks=[],
        plugins=[],
        strict=True,
    )
    with pytest.raises(Abort):
        build(config)


def test_links_out_of_the_pages_lead_to_the_site() -> None:
    text = "[runtime](../../runner/runtimes/mate/README.md#words), [here](threads.md), [net](https://x.org)"
    assert site.links(text, "howto/page.md") == (
        "[runtime](../reference/mate.md#words), [here](threads.md), [net](https://x.org)"
    )
    back = site.links("[results](../../../docs/results/results.md#a)", "reference/mate.md")
    assert back == "[results](../results/results.md#a)"


def test_a_bar_in_the_code_of_a_table_has_no_backslash() -> None:
    assert site.bars("| `A\\|B` | c\\|d |\n`A\\|B`") == "| `A|B` | c\\|d |\n`A\\|B`"


def test_lists_are_read_as_github_reads_them() -> None:
    text = "Two words:\n- one\n  - part\n- two\n\n```\nText\n- no list\n```"
    assert site.lists(text) == (
        "Two words:\n\n- one\n    - part\n- two\n\n```\nText\n- no list\n```"  # data
    )


def test_without_the_tools_the_script_says_what_to_install(tmp_path: Path) -> None:
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\nexit 1\n")
    empty.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    for name in ("docs", "python"):
        shutil.copy(ROOT / ".ci" / name, tmp_path / ".ci")
    done = subprocess.run(
        ["bash", ".ci/docs"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": str(empty)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "mkdocs" in done.stderr
