"""``autotune publish``: writes a proven setting as files that a cluster loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import ClusterName, CommutativeOnly, Mpi
from autotune.document import Document, Omitted
from autotune.files import check_writable
from autotune.notes import Note, lock_notes
from autotune.terminal.publication import print_places, print_publication
from autotune.terminal.render import (
    error_console,
    print_hanging,
    print_line,
    print_message,
    print_table,
    write_json,
)

if TYPE_CHECKING:
    from autotune.publish.plan import Planned
    from autotune.publish.publication import Published
    from autotune.publish.source import PublicationSource
    from runner.mpi.library import Library


class PlannedFile(Document):
    """A file that would be written: its text, or what would change in it."""

    path: str
    format: str
    text: Omitted[str] = None
    diff: Omitted[str] = None


class PlannedFiles(Document):
    """Files that would be written."""

    schema_: Literal["autotune-published-1"] = Field(default="autotune-published-1", alias="schema")
    dry_run: Literal[True] = True
    files: list[PlannedFile]


class FormatRow(Document):
    """A format, and why its files cannot be proven with this MPI library; null: they can."""

    format: str
    summary: str
    cannot_be_proven: str | None


FormatList = list[FormatRow]


def publish(
    cluster: ClusterName = "local",
    source: Annotated[
        str | None,
        opt(
            "--from SOURCE",
            "Proven result to publish: study:ID, classwide:ID or collectives:ID. Default: "
            "the latest proven class-wide result.",
        ),
    ] = None,
    format_names: Annotated[
        list[str] | None,
        opt(
            "--format -f F",
            "File format; may be repeated (--formats lists all). Default: the per-user "
            "files of the MPI library.",
            autocompletion=completion.formats,
        ),
    ] = None,
    list_formats: Annotated[
        bool,
        opt("--formats", "List the formats, and which of them this MPI library is seen to obey."),
    ] = False,
    out: Annotated[
        Path | None,
        opt(
            "-o --out FILE",
            "File or folder to write. Default: where the MPI library reads the format.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, opt("--dry-run", "Print the files; run nothing and write nothing.")
    ] = False,
    show_diff: Annotated[
        bool, opt("--diff", "Print the changes to the files; run nothing and write nothing.")
    ] = False,
    force: Annotated[
        bool,
        opt(
            "--force",
            "Publish despite doubts about the proof, and replace files that were edited by hand.",
        ),
    ] = False,
    unproven: Annotated[
        bool,
        opt(
            "--unproven", "Write also formats for which no run here can show that they are obeyed."
        ),
    ] = False,
    spaces: Annotated[
        list[str] | None,
        opt(
            "--space NAME|FILE",
            "Space whose parameters the files may contain, in addition to the shipped "
            "spaces and your own. May be repeated.",
        ),
    ] = None,
    mpi: Mpi = None,
    commutative_only: CommutativeOnly = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Publish a proven setting as files, after test runs have shown that MPI obeys them.

    autotune unpublish removes the files and restores what was there before.
    """
    from autotune.config.cluster import load_cluster
    from autotune.publish import formats
    from autotune.publish.plan import plan_files
    from autotune.publish.probe import Prober
    from autotune.publish.publication import publish_files as carry_out
    from autotune.publish.source import read_source
    from autotune.store import Store
    from runner.lock import MachineLock
    from runner.mpi.discover import find_library

    library = find_library(mpi)
    if list_formats:
        _list(library, json_out)
        return
    if json_out not in (None, "-"):
        check_writable(Path(str(json_out)))
    chosen = [formats.find(name) for name in dict.fromkeys(format_names or ())]
    place = load_cluster(cluster)
    with Store.open(store) as opened:
        proposal = read_source(
            source,
            place,
            library,
            opened,
            force,
            spaces or (),
            named=mpi is not None,
            commutative_only=commutative_only,
        )
    asked = len(chosen)
    chosen = formats.complete(chosen, proposal.content, library)
    for more in chosen[asked:] if format_names else ():
        print_message(f"also --format {more.name}: without it the other file does nothing")
    if not format_names:
        chosen = formats.usual(proposal.content, library)
        said = " ".join(f"--format {fmt.name}" for fmt in chosen)
        print_message(f"formats for this user only: {said} (--formats lists all)")
    planned = plan_files(proposal, chosen, place, library, out, force=force, unproven=unproven)
    if dry_run or show_diff:
        _preview(planned, library, show_diff, json_out)
        return
    quiet = json_out == "-"
    errors = error_console()

    def say(note: Note) -> None:
        if not quiet:
            errors.print(note.words, markup=False)

    with MachineLock("shared", tell=lock_notes(say)), Prober(library, place) as prober:
        done = carry_out(planned, prober, say)
    if json_out:
        _write(proposal, done, json_out)
    if not quiet:
        print_publication(proposal, done, force)
        print_places(planned, library)


def _write(proposal: PublicationSource, done: list[Published], json_out: str) -> None:
    from autotune.publish.publication import PublishedFiles

    document = PublishedFiles(
        evidence=proposal.evidence.to_json(),
        doubts=list(proposal.doubts),
        files=[one.row for one in done],
    )
    write_json(document, json_out)


def _preview(
    planned: list[Planned], library: Library, show_diff: bool, json_out: str | None
) -> None:
    from autotune.publish.publication import diff, preview

    texts = [diff(one, library) if show_diff else preview(one, library) for one in planned]
    if json_out:
        rows = [
            PlannedFile(
                path=str(one.path),
                format=one.fmt.name,
                text=None if show_diff else text,
                diff=text if show_diff else None,
            )
            for one, text in zip(planned, texts, strict=True)
        ]
        write_json(PlannedFiles(files=rows), json_out)
    if json_out == "-":
        return
    for one, text in zip(planned, texts, strict=True):
        if not show_diff:
            print_line(f"would write {one.path}:", whole=True, bold=True)
        print_line(text, whole=True)


def _list(library: Library, json_out: str | None) -> None:
    from autotune.publish import formats

    rows = [(one.name, one.summary, one.unobeyed(library)) for one in formats.everything()]
    if json_out:
        shown = [FormatRow(format=f, summary=s, cannot_be_proven=why) for f, s, why in rows]
        write_json(shown, json_out)
    if json_out == "-":
        return
    words = [[name, summary, "no" if why else "yes"] for name, summary, why in rows]
    title = f"proven here: {library.family} {library.version} can be seen to obey the file"
    print_table(title, ["format", "description", "proven here"], words)
    reasons: dict[str, list[str]] = {}
    for name, _, why in rows:
        if why:
            reasons.setdefault(why, []).append(name)
    if reasons:
        print_line("\nnot proven here (publish --unproven writes these formats all the same):")
    for why, names in reasons.items():
        print_hanging("  ", f"{', '.join(names)}: {why}")
