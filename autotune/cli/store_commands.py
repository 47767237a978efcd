"""``autotune store``: check, prune and back up the results database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import Force, JsonOut, StoreUrl, opt, refuse_existing
from autotune.errors import UsageError
from autotune.terminal.render import write_document
from autotune.terminal.store_house import print_backup, print_check, print_prune

store = typer.Typer(
    help="Check, prune and back up the results database.",
    no_args_is_help=True,
)


@store.command("check")
def check(
    quick: Annotated[
        bool,
        opt("--quick", "Do not read each row, and check the file without its indexes."),
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Check the database, and that all is there on which published files rest.

    Looked at are the file itself, references between rows, each row, what your published files
    rest on (studies, runs of the proof, stored results), and outputs and results that nobody names.
    Nothing is changed.  The exit code is 0 without a finding, and 1 with one.
    """
    from autotune.api.store_check import check_store

    result = check_store(store, quick)
    if write_document(result, json_out):
        print_check(result)
    if result.findings:
        raise typer.Exit(1)


@store.command("prune")
def prune(
    keep: Annotated[
        list[str] | None,
        opt(
            "--keep KIND=DAYS",
            "What goes when it is older: outputs=DAYS (what programs printed; the runs stay), "
            "rejected=DAYS (runs that the guard rejected).  May be given for both.",
        ),
    ] = None,
    published: Annotated[
        list[Path] | None,
        opt("--published FILE", "A published file of somebody else, whose study stays whole."),
    ] = None,
    yes: Annotated[bool, opt("--yes", "Remove it.  Without this it is only listed.")] = False,
    dry_run: Annotated[bool, opt("--dry-run", "Only list it, as without --yes.")] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """List what may go from the database, and remove it with --yes.

    Outputs that no run names always go.  Valid runs stay, and runs of proofs.  Nothing goes of an
    unfinished study, or of one on which a published file rests.  Workers may go on meanwhile.
    """
    from autotune.api.store_prune import keep_days, prune_store

    if yes and dry_run:
        raise UsageError(
            "--yes and --dry-run were both given; give only one", code="store.prune_conflict"
        )
    days = keep_days(keep or ())
    paths = [path.expanduser().absolute() for path in published or ()]
    result = prune_store(store, days, paths, yes)
    if write_document(result, json_out):
        print_prune(result)


@store.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")],
    force: Force = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Write a backup of the database to FILE, while workers go on.

    A file of SQLite is copied by its online backup, and the copy is checked.  It is a database
    itself: --store FILE reads it.  Of a PostgreSQL server, pg_dump writes autotune's tables.
    """
    from autotune.api.store_backup import back_up_store

    path = file.expanduser().absolute()
    refuse_existing(path, force, "FILE")
    result = back_up_store(store, path)
    if write_document(result, json_out):
        print_backup(result)
