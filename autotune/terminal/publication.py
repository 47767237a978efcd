"""Terminal output of published files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.terminal.render import note_line, print_hanging, print_line, print_note, print_table
from autotune.wording import key_parts
from runner.files.paths import is_file

if TYPE_CHECKING:
    from autotune.api.publication import FormatRow, PlannedFile
    from autotune.publish.plan import FilePlan
    from autotune.publish.publication import InstalledFile
    from autotune.publish.source import PublicationSource
    from runner.mpi.library import Library


def print_publication(
    proposal: PublicationSource, publications: list[InstalledFile], force: bool
) -> None:
    """Print what was published, with its proof; with ``force`` also the doubts."""
    from autotune.publish.evidence_lines import gain_words

    evidence = proposal.evidence
    print_line(f"{evidence.source}: {', '.join(key_parts(evidence.setting))}")
    print_line(f"{evidence.gain_title}: {gain_words(evidence.gain, evidence.gain_ci)}")
    if evidence.checked:
        print_line(evidence.checked)
    for doubt in proposal.doubts if force else ():
        print_note(doubt)
    for one in publications:
        mark = "published" if one.proven else "written, UNPROVEN"
        print_line(f"{mark}: {one.path} ({one.format})", whole=True)
        print_line(f"  {one.probe}")
        if one.saved_edits is not None:
            print_line(f"  the edited file was saved as {one.saved_edits}", whole=True)
        print_line(f"  undo: {one.undo}", whole=True)


def print_places(plans: Sequence[FilePlan], library: Library) -> None:
    """Print notes about files that no library reads, and the command that verifies the others."""
    from autotune.config.find import user_config
    from autotune.publish.programs import recorded_only
    from autotune.publish.publication import is_live

    read = [one for one in plans if is_live(one, library)]
    for one in plans:
        if one in read:
            continue
        usual = one.fmt.default_path(one.header.cluster, library)
        words = f"no library reads {one.path}; install it where this library reads {usual}"
        print_line(note_line("publish.not_read", words), whole=True)
    check = plans[0].header.evidence.check
    names = [("clusters", plans[0].header.cluster), *(("apps", str(c.get("app"))) for c in check)]
    for kind, name in dict.fromkeys(names):
        if is_file(Path("configs") / kind / f"{name}.toml"):
            place = user_config() / kind
            words = (
                f"configs/{kind}/{name}.toml is found from this directory only; for "
                f"cron, copy it to {place}, or run the command after cd {Path.cwd()}"
            )
            print_line(note_line("publish.local_config", words), whole=True)
    if read:
        option = " --run-recorded" if recorded_only(check) else ""
        files = shlex.join(str(one.path) for one in read)
        words = f"to check it again later:  autotune verify-published{option} {files}"
        print_line(words, whole=True)


def print_preview(files: Sequence[PlannedFile]) -> None:
    """Print the files that would be written, or what would change in them."""
    for file in files:
        if file.diff is None:
            print_line(f"would write {file.path}:", whole=True, bold=True)
        print_line(file.text or file.diff or "", whole=True)


def print_formats(rows: Sequence[FormatRow], library: Library) -> None:
    """Print the formats, and why some are not proven here."""
    words = [[r.format, r.summary, "no" if r.cannot_be_proven else "yes"] for r in rows]
    title = f"proven here: {library.family} {library.version} can be seen to obey the file"
    print_table(title, ["format", "description", "proven here"], words)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.cannot_be_proven:
            reasons.setdefault(row.cannot_be_proven, []).append(row.format)
    if reasons:
        print_line("\nnot proven here (publish --unproven writes these formats anyway):")
    for why, names in reasons.items():
        print_hanging("  ", f"{', '.join(names)}: {why}")
