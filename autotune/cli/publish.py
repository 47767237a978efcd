"""``autotune publish``: writes a proven setting as files that a cluster loads."""

from __future__ import annotations

from pathlib import Path

from autotune.api.publication_requests import PublishRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.files import check_writable
from autotune.notes import Note, lock_notes
from autotune.terminal.publication import (
    print_formats,
    print_places,
    print_preview,
    print_publication,
)
from autotune.terminal.render import error_console, print_message, write_document


@takes_request
def publish(request: PublishRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
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
    from autotune.publish.source_place import cluster_of_source, library_of_source
    from autotune.store import Store
    from runner.lock import MachineLock
    from runner.mpi.discover import find_library

    library = find_library(request.mpi)
    if request.list_formats:
        rows = format_list(library)
        if write_document(rows, json_out):
            print_formats(rows, library)
        return
    if json_out not in (None, "-"):
        check_writable(Path(str(json_out)))
    file_formats = [formats.find(name) for name in dict.fromkeys(request.format_names)]
    with Store.open(store) as database:
        place = load_cluster(request.cluster or cluster_of_source(request.source, database))
        library = library_of_source(request.source, place.name, database, request.mpi)
        proposal = read_source(
            request.source,
            place,
            library,
            database,
            request.force,
            request.spaces,
            user_names_library=request.mpi is not None,
            commutative_only=request.commutative_only,
        )
    format_count = len(file_formats)
    file_formats = formats.complete(file_formats, proposal.content, library)
    for more in file_formats[format_count:] if request.format_names else ():
        print_message(f"also --format {more.name}: without it the other file does nothing")
    if not request.format_names:
        file_formats = formats.usual(proposal.content, library)
        format_words = " ".join(f"--format {fmt.name}" for fmt in file_formats)
        print_message(f"formats for this user only: {format_words} (--formats lists all)")
    out = None if request.out is None else Path(request.out)
    file_plans = plan_files(
        proposal, file_formats, place, library, out, force=request.force, unproven=request.unproven
    )
    if request.dry_run or request.show_diff:
        preview = planned_files(file_plans, library, request.show_diff)
        if write_document(preview, json_out):
            print_preview(preview.files)
        return
    quiet = json_out == "-"
    errors = error_console()

    def say(note: Note) -> None:
        if not quiet:
            errors.print(note.words, markup=False)

    with MachineLock("shared", tell=lock_notes(say)), Prober(library, place) as prober:
        publications = carry_out(file_plans, prober, say)
    if write_document(published_files(proposal, publications), json_out):
        print_publication(proposal, publications, request.force)
        print_places(file_plans, library)
