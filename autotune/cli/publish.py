"""``autotune publish``: writes a proven setting as files that a cluster loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autotune.cli import completion
from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import ClusterName, CommutativeOnly, Mpi
from autotune.files import check_writable
from autotune.notes import Note, lock_notes
from autotune.terminal.publication import (
    print_formats,
    print_places,
    print_preview,
    print_publication,
)
from autotune.terminal.render import error_console, print_message, write_document

if TYPE_CHECKING:
    pass


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
    from autotune.api.publication import format_list, planned_files, published_files
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
        rows = format_list(library)
        if write_document(rows, json_out):
            print_formats(rows, library)
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
        preview = planned_files(planned, library, show_diff)
        if write_document(preview, json_out):
            print_preview(preview.files)
        return
    quiet = json_out == "-"
    errors = error_console()

    def say(note: Note) -> None:
        if not quiet:
            errors.print(note.words, markup=False)

    with MachineLock("shared", tell=lock_notes(say)), Prober(library, place) as prober:
        done = carry_out(planned, prober, say)
    if write_document(published_files(proposal, done), json_out):
        print_publication(proposal, done, force)
        print_places(planned, library)
