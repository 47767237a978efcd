"""What MkDocs does besides: pages from elsewhere, lists as GitHub reads them.

The runtime's README and the pages at the repository's root are pages of the site.  The API
reference is made from the docstrings.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.builders import EXTERNAL_PAGES, ROOT, constants

LINK = re.compile(r"(\]\()(?!https?:|#)([^)#\s]+)")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"`[^`]+`")
ITEM = re.compile(r"^( *)([-*+]|\d+\.) +")

_api = tempfile.TemporaryDirectory(prefix="api-")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in ``docs``."""
    for place, source in EXTERNAL_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    command = [sys.executable, "-m", "docs.builders.api_reference", _api.name]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        raise PluginError(f"the API reference was not made:\n{made.stderr}")
    for path in sorted(Path(_api.name).rglob("*")):
        if path.is_file():
            place = f"api/{path.relative_to(_api.name).as_posix()}"
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links that hold on the site, and lists that Python-Markdown reads."""
    place = page.file.src_uri
    return lists(bars(links(constants.MARK.sub("", constants.inject(markdown)), place)))


def links(markdown: str, place: str) -> str:
    """Links between the repository's files as links between the site's pages."""
    pages = {source: page for page, source in EXTERNAL_PAGES.items()}
    source = EXTERNAL_PAGES.get(place, f"docs/{place}")

    def on_the_site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        page = pages.get(target) or (target[5:] if target.startswith("docs/") else None)
        if page is None:
            return match[0]
        return match[1] + posixpath.relpath(page, posixpath.dirname(place) or ".")

    return LINK.sub(on_the_site, markdown)


def bars(markdown: str) -> str:
    """Bars in the code of tables: GitHub wants a backslash before them, the site would show it."""
    rows = (
        CODE.sub(lambda code: code[0].replace(r"\|", "|"), line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )
    return "\n".join(rows)


def lists(markdown: str) -> str:
    """Lists as GitHub reads them: they need no empty line above, and two spaces nest them."""
    result: list[str] = []
    fenced = in_list = False
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        item = None if fenced else ITEM.match(line)
        last = result[-1] if result else ""
        if item and len(item[1]) < 4:
            if len(item[1]) >= 2 and in_list:
                line = "    " + line.lstrip()
            elif not in_list and last.strip():
                result.append("")
            in_list = True
        elif line.strip() and not line.startswith(" ") and not last.strip():
            in_list = False
        result.append(line)
    return "\n".join(result)
