"""The plan of a publication: which files are written, where, and with which text.

Nothing is written yet.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.config.cluster import Cluster
from autotune.errors import UsageError
from autotune.publish import formats as known_formats
from autotune.publish.block import without_block
from autotune.publish.content import Content, check_path, without_rules
from autotune.publish.formats.base import Format
from autotune.publish.formats.rules import RulesV1
from autotune.publish.header import Header, series
from autotune.publish.install import BACKUP, Text, load_text
from autotune.publish.published_text import compose, edit
from autotune.publish.source import PublicationSource, read_source
from autotune.store import Store
from runner.files.paths import exists, is_folder
from runner.machine import describe_machine
from runner.mpi.library import Library
from runner.types import LIBRARY


@dataclass(frozen=True)
class FilePlan:
    """One planned file.  ``old`` is the present content; ``obstacle`` says why nothing can prove
    the file, None if it can be proven."""

    fmt: Format
    path: Path
    content: Content
    header: Header
    others: str
    old: Text | None
    has_edits: bool
    backup: bool
    obstacle: str | None

    def text(self, content: Content, library: Library, probe: str) -> Text:
        """The file with ``content`` (its own, or a canary's); ``probe`` says what a probe
        showed."""
        header = replace(self.header, content=self.content, probe=probe)
        return compose(self.fmt, header, content, self.others, library)


def plan_files(
    proposal: PublicationSource,
    formats: Sequence[Format],
    cluster: Cluster,
    library: Library,
    out: Path | None = None,
    *,
    force: bool = False,
    unproven: bool = False,
) -> list[FilePlan]:
    """The files that would be published, rules files first.

    Raises UsageError for doubts and for files that would be lost (both unless ``force``), for
    formats that cannot be proven here (unless ``unproven``), and for content that the formats
    cannot express.
    """
    _refuse_doubts(proposal, force)
    if out is not None and len(formats) > 1 and not _is_folder(out):
        raise UsageError(
            f"-o {out} is one file for {len(formats)} formats; give an existing folder, in "
            "which each gets its usual name",
            code="publish.one_file",
        )
    wide = [f.name for f in formats if f.cluster_wide]
    if wide and not proposal.classwide:
        raise UsageError(
            f"{', '.join(wide)} changes the default of all users, but "
            f"{proposal.evidence.source} was proven for one program; only classwide:ID may "
            "be published there.\nFor the setting of a study use a per-user file, a tune "
            "file, a module or an environment script (--format openmpi-user, tune, tcl, "
            "lmod, sh).",
            code="publish.not_classwide",
        )
    obstacles = {fmt.name: fmt.obstacle(library) for fmt in formats}
    for name, why in obstacles.items():
        if why is not None and not unproven:
            raise UsageError(
                f"{name} cannot be proven here: {why}.\n--unproven writes it anyway, and "
                "notes it in the file.",
                code="publish.unprovable",
            )
    return [
        _plan_file(fmt, content, path, proposal, cluster, library, obstacles[fmt.name], force)
        for fmt, content, path in _parts(proposal.content, formats, cluster, library, out)
    ]


ALL_IN_ONE = "sh"
"""The format that can express every kind of parameter."""


def publish_options(
    study: str, cluster: Cluster, library: Library, store: Store, spaces: Sequence[str] = ()
) -> list[str] | None:
    """Options of ``autotune publish`` with which a study can be published for this user; None if
    it cannot.

    ``study`` is the beginning of its hash; ``spaces`` are files of spaces that the study may need.
    Nothing is run and nothing is written.
    """
    try:
        proposal = read_source(f"study:{study}", cluster, library, store, spaces=spaces)
    except UsageError:
        return None
    files = [word for space in spaces for word in ("--space", space)]
    try:
        plan_files(proposal, known_formats.usual(proposal.content, library), cluster, library)
        return files
    except UsageError:
        pass
    try:
        plan_files(proposal, [known_formats.find(ALL_IN_ONE)], cluster, library)
    except UsageError:
        return None
    return [*files, "--format", ALL_IN_ONE]


def _refuse_doubts(proposal: PublicationSource, force: bool) -> None:
    if proposal.doubts and not force:
        raise UsageError(
            f"{proposal.evidence.source} is not published:\n"
            + "\n".join(f"  - {doubt.words}" for doubt in proposal.doubts)
            + "\n--force publishes it anyway.",
            code="publish.doubtful",
        )


def _parts(
    content: Content,
    formats: Sequence[Format],
    cluster: Cluster,
    library: Library,
    out: Path | None,
) -> list[tuple[Format, Content, Path]]:
    """Each format with its part of the content; raises UsageError unless they cover all of it."""
    tables: list[Format] = [fmt for fmt in formats if isinstance(fmt, RulesV1)]
    # All users must find the table that a file of the installation names, so it lies beside it.
    wide = [_path(f, cluster, library, None).parent for f in formats if f.cluster_wide]
    parts = [(f, f.part(content, library), _path(f, cluster, library, out)) for f in tables]
    if wide and out is None:
        parts = [(f, part, wide[0] / path.name) for f, part, path in parts]
    rest, covered_names = content, set[tuple[str, str]]()
    if any(part.rules for _, part, _ in parts):
        # The rules, and the parameters that they replace.
        rest = without_rules(content)
        covered_names = {name for name in content.names - rest.names if name[0] != "rules"}
    for fmt, _, path in parts if len(formats) > 1 else ():
        for name, value in fmt.naming(check_path(str(path))).items():
            rest = rest.with_value(LIBRARY, name, value)
    for fmt in formats:
        if fmt not in tables:
            parts.append((fmt, fmt.part(rest, library), _path(fmt, cluster, library, out)))
    for fmt, part, _ in parts:
        covered_names |= part.names
        if not part.names:
            raise UsageError(
                f"the setting has nothing that the format {fmt.name} can express",
                code="publish.not_expressible",
            )
    if missing := content.names - covered_names:
        names = ", ".join(sorted(name for _, name in missing))
        raise UsageError(
            f"{names} cannot be expressed in {', '.join(f.name for f in formats)}, and a "
            "part of a setting is not what was proven.\nAdd a format for the rest (mapping "
            "and binding of Open MPI 5: --format prte-user or prte-system), or use one "
            "that holds all: --format sh.",
            code="publish.not_expressible",
        )
    _refuse_same(parts)
    return parts


def _path(fmt: Format, cluster: Cluster, library: Library, out: Path | None) -> Path:
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", cluster.name)
    usual = fmt.default_path(name, library)
    if out is not None and _is_folder(out):
        usual = out / usual.name
    elif out is not None:
        usual = out
    return usual.expanduser().absolute()


def _is_folder(out: Path) -> bool:
    return is_folder(out.expanduser())


def _refuse_same(parts: Sequence[tuple[Format, Content, Path]]) -> None:
    """Raise UsageError for two formats with the same path: the second would replace the first."""
    names_by_path: dict[Path, str] = {}
    for fmt, _, path in parts:
        if path in names_by_path:
            raise UsageError(
                f"{names_by_path[path]} and {fmt.name} would both write {path}; publish them with "
                "two commands, or use one format that holds all: --format sh",
                code="publish.same_file",
            )
        names_by_path[path] = fmt.name


def _plan_file(
    fmt: Format,
    content: Content,
    path: Path,
    proposal: PublicationSource,
    cluster: Cluster,
    library: Library,
    why: str | None,
    force: bool,
) -> FilePlan:
    old = load_text(path)
    others, backup, make = "", None, False
    has_edits, makes_folder = False, not exists(path.parent)
    if old is not None:
        before = old.header
        has_edits = before is not None and edit(path, old, before) is not None
        _refuse_loss(path, fmt, before is not None, has_edits, force)
        if before is None:
            backup, make = path.name + BACKUP, True
        else:
            backup, makes_folder = before.backup, before.makes_folder
        others = lines_of_others(fmt, old)
    header = Header(
        format=fmt.name,
        cluster=cluster.name,
        tool=_version(),
        date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        mpi=series(library),
        fingerprint=cluster_fingerprint(cluster),
        probe="" if why is None else f"none: {why}",
        proven=why is None,
        backup=backup,
        content=content,
        evidence=proposal.evidence,
        guards=fmt.guards,
        makes_folder=makes_folder,
    )
    return FilePlan(fmt, path, content, header, others, old, has_edits, make, why)


def lines_of_others(fmt: Format, text: Text) -> str:
    """The lines of others that stay in a file, whole lines each."""
    others = without_block(text.main) if fmt.merges else ""
    return others if not others or others.endswith("\n") else f"{others}\n"


def _refuse_loss(path: Path, fmt: Format, ours: bool, has_edits: bool, force: bool) -> None:
    if has_edits and not force:
        raise UsageError(
            f"{path} was edited after autotune published it.\n--force replaces it and "
            "saves the edited file beside it.",
            code="published.edited",
        )
    if not ours and not fmt.merges and not force:
        raise UsageError(
            f"{path} exists and was not written by autotune.\n--force replaces it and "
            "keeps a backup; -o FILE writes to another file.",
            code="publish.one_file",
        )


def cluster_fingerprint(cluster: Cluster) -> str:
    """16 hexadecimal digits over machine, nodes and interconnect."""
    text = f"{describe_machine().fingerprint} {cluster.nodes} {cluster.interconnect}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _version() -> str:
    try:
        return importlib.metadata.version("mpi-autotune")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "unknown"
