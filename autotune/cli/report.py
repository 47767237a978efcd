"""``autotune report``: one page that a centre would put on its web site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.report.build import cluster_page, study_page
from autotune.report.page import render
from autotune.store import Store
from autotune.terminal.render import console, write_json
from autotune.words import count


def report(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="Its number, or its hash's beginning.")
    ] = None,
    cluster: Annotated[
        str | None, opt("--cluster NAME", "All that was measured on a cluster.")
    ] = None,
    dataset: Annotated[
        str | None, opt("--dataset NAME", "With --cluster: its level means too.")
    ] = None,
    out: Annotated[Path, opt("-o --out FILE.html", "Where the page goes.")] = Path("report.html"),
    force: Annotated[bool, opt("--force", "Replace an existing file.")] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Write a self-contained HTML page about a study or a cluster.

    Gains with intervals, pictures, settings to copy, and where all of it comes from.  Nothing is
    loaded from elsewhere.
    """
    if (study is None) == (cluster is None):
        raise UsageError("say what the page is about: either STUDY or --cluster NAME")
    if dataset is not None and cluster is None:
        raise UsageError("--dataset goes with --cluster NAME")
    if out.exists() and not force:
        raise UsageError(f"{out} exists; --force replaces it")
    with Store.open_to_read(store) as opened:
        if study is not None:
            page = study_page(opened, opened.find_study(study))
        else:
            page = cluster_page(opened, str(cluster), dataset)
    text = render(page)
    write_text(out, text)
    if json_out:
        data = {
            "schema": "autotune-report-1",
            "file": str(out),
            "title": page.title,
            "sections": [section.title for section in page.sections],
            "figures": sum(len(section.figures) for section in page.sections),
            "bytes": len(text.encode()),
        }
        write_json(data, json_out)
    if json_out != "-":
        figures = sum(len(section.figures) for section in page.sections)
        console().print(
            f"wrote {out}: {count(len(page.sections), 'section')}, {count(figures, 'figure')}",
            markup=False,
        )
