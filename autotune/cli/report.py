"""``autotune report``: one HTML page about a study or a cluster, for a web site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from autotune.cli.options import STUDY, Force, JsonOut, StoreUrl, opt, refuse_existing
from autotune.document import Document
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.render import print_line, write_json
from autotune.wording import count

if TYPE_CHECKING:
    from autotune.report.page import Section


class WrittenPage(Document):
    """A page that was written."""

    schema_: Literal["autotune-report-1"] = Field(default="autotune-report-1", alias="schema")
    file: str
    title: str
    sections: list[str]
    figures: int
    bytes: int


def report(
    study: Annotated[str | None, STUDY] = None,
    cluster: Annotated[
        str | None, opt("--cluster NAME", "Report on all studies of this cluster.")
    ] = None,
    dataset: Annotated[
        str | None,
        opt("--dataset NAME", "Add the level means of this dataset. Only with --cluster."),
    ] = None,
    time_line: Annotated[
        Path | None,
        opt(
            "--time-line FILE",
            "Add who computes, who waits and who sends to whom: a file that a MATE program wrote "
            "with --time-line. Only with STUDY.",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        opt(
            "--features FILE",
            "Add the messages between ranks: a file of autotune features. Only with STUDY.",
        ),
    ] = None,
    out: Annotated[Path, opt("-o --out FILE.html", "HTML file to write.")] = Path("report.html"),
    force: Force = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Write a self-contained HTML page about a study or a cluster.

    The page has gains with confidence intervals, figures, settings to copy, and the origin of all
    data.  It loads nothing from the network.
    """
    from autotune.cli.reading import reading
    from autotune.report.build import cluster_page, study_page
    from autotune.report.page import render

    if (study is None) == (cluster is None):
        raise UsageError(
            "the subject of the page is missing or given twice; expected either STUDY or "
            "--cluster NAME",
            code="page.subject",
        )
    if dataset is not None and cluster is None:
        raise UsageError(
            "--dataset needs --cluster NAME; a page about a study has no dataset",
            code="page.not_applicable",
        )
    if study is None and (time_line is not None or features is not None):
        raise UsageError(
            "--time-line and --features need STUDY; a page about a cluster has no single program",
            code="page.not_applicable",
        )
    refuse_existing(out, force, "-o FILE.html")
    sections = _program_sections(time_line, features)
    with reading(store) as database:
        if study is not None:
            page = study_page(database, database.find_study(study), sections)
        else:
            page = cluster_page(database, str(cluster), dataset)
    text = render(page)
    write_text(out, text)
    figures = sum(len(section.figures) for section in page.sections)
    if json_out:
        document = WrittenPage(
            file=str(out),
            title=page.title,
            sections=[section.title for section in page.sections],
            figures=figures,
            bytes=len(text.encode()),
        )
        write_json(document, json_out)
    if json_out != "-":
        print_line(
            f"wrote {out}: {count(len(page.sections), 'section')}, {count(figures, 'figure')}"
        )


def _program_sections(time_line: Path | None, features: Path | None) -> list[Section]:
    """The sections about the program; raises UsageError for a file that is none of these."""
    from autotune.api.features import read_features
    from autotune.report.time_line import read_time_line, time_line_sections
    from autotune.report.traffic import traffic_section

    sections = []
    if time_line is not None:
        sections += time_line_sections(read_time_line(time_line))
    if features is not None:
        sections.append(traffic_section(read_features(features)))
    return sections
