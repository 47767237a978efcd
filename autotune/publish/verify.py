"""Published files looked at again: still there, still obeyed, still better than the default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.config.app import app_from_command, load_app
from autotune.config.cluster import Cluster
from autotune.config.find import listing
from autotune.errors import UsageError
from autotune.publish.content import Content, Evidence
from autotune.publish.formats import find
from autotune.publish.formats.base import Loading
from autotune.publish.formats.mpich import FILE as MPICH_FILE
from autotune.publish.formats.mpich import MpichJson
from autotune.publish.header import Header
from autotune.publish.install import read_text
from autotune.publish.plan import series
from autotune.publish.probe import Prober
from autotune.publish.rules import ENABLE, FILE
from autotune.publish.tune_file import NotObeyed
from autotune.space import Parameter, Setting, Space
from autotune.space.setting import read_value
from autotune.stats import Plan
from autotune.store import Store
from autotune.study.compare import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.events import Watcher, silent
from autotune.study.target import Target
from runner.machine import describe
from runner.mpi.library import Library

LOST = ("worse", "equivalent")
"""Outcomes that say: not better any more."""


@dataclass
class FileState:
    """One file.  ``in_force`` is None where nothing here can tell; ``why`` in plain words."""

    path: Path
    in_force: bool | None
    why: str
    header: Header | None = None

    def to_json(self) -> dict[str, Any]:
        header = self.header
        return {
            "path": str(self.path),
            "in_force": self.in_force,
            "why": self.why,
            "format": header.format if header else None,
            "source": header.evidence.source if header else None,
        }


@dataclass
class Recheck:
    """One comparison of a publication's values against the default on one program."""

    source: str
    program: str
    outcome: str
    words: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def lost(self) -> bool:
        return self.outcome in LOST

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "program": self.program,
            "still_better": {"better": True, "worse": False, "equivalent": False}.get(self.outcome),
            "words": self.words,
            **self.data,
        }


def published_header(path: Path) -> Header:
    """The header of the file at ``path``; UsageError where autotune did not publish it."""
    text = read_text(path)
    if text is None:
        raise UsageError(f"there is no file {path}")
    header = text.header
    if header is None:
        raise UsageError(f"{path} was not published by autotune: it has no such header")
    return header


def look(path: Path, prober: Prober) -> FileState:
    """Whether the file is untouched and obeyed by the library of ``prober``."""
    text = read_text(path)
    if text is None:
        return FileState(path, False, "the file is gone")
    header = text.header
    if header is None:
        return FileState(path, False, "what autotune had published is no longer in the file")
    if text.edited:
        return FileState(path, False, "the file was edited since it was published", header)
    here = series(prober.library)
    if here.split(" (")[0] != header.mpi.split(" (")[0]:
        return FileState(path, False, f"it is for {header.mpi}; here is {here}", header)
    if not header.proven:
        return FileState(path, None, f"cannot be seen ({header.probe})", header)
    fmt = find(header.format)
    try:
        prober.check(fmt, header.content, _loading(path, header, prober))
    except NotObeyed as problem:
        return FileState(path, False, str(problem), header)
    return FileState(path, True, f"{len(header.content.names)} values in force", header)


def _loading(path: Path, header: Header, prober: Prober) -> Loading:
    """As a user's launch sees it; a parameter file that lies elsewhere is in force nowhere."""
    fmt = find(header.format)
    if fmt.merges and path != fmt.default_path(header.cluster, prober.library).absolute():
        raise NotObeyed(
            f"{fmt.name}: this library reads "
            f"{fmt.default_path(header.cluster, prober.library)}, not {path}"
        )
    return fmt.live(path, prober.library)


def publications(states: Iterable[FileState]) -> dict[str, tuple[Evidence, Content]]:
    """source -> evidence and all values that its files hold together."""
    found: dict[str, tuple[Evidence, Content]] = {}
    for state in states:
        if state.header is None:
            continue
        evidence = state.header.evidence
        content = _as_parameters(state.header, state.path)
        if evidence.source in found:
            before = found[evidence.source][1]
            groups = {
                g: {**before.groups.get(g, {}), **content.groups.get(g, {})}
                for g in {*before.groups, *content.groups}
            }
            content = Content(groups)
        found[evidence.source] = (evidence, content)
    return found


def _as_parameters(header: Header, path: Path) -> Content:
    """Rules are compared by naming their file."""
    content = header.content
    if not content.rules:
        return content
    if header.format == MpichJson.name:
        return Content(content.groups).with_value("mca", MPICH_FILE, str(path))
    return Content(content.groups).with_value("mca", ENABLE, "1").with_value("mca", FILE, str(path))


def recheck(
    evidence: Evidence,
    content: Content,
    cluster: Cluster,
    library: Library,
    store: Store,
    *,
    pairs: int,
    budget_s: float | None = None,
    guard: bool = True,
    watch: Watcher = silent,
) -> list[Recheck]:
    """Interleaved pairs of the default and the published values, on each program of the evidence.

    The published files are out of force on both sides (``clean_env``): else the default would be
    measured with them.
    """
    space = Space(
        "published",
        tuple(
            Parameter(name, (read_value(value),), _target(group))
            for group, values in sorted(content.groups.items())
            for name, value in sorted(values.items())
        ),
    )
    setting = Setting({p.name: p.levels[0] for p in space})
    found = []
    for check in evidence.check:
        target = _target_of(check, cluster, library)
        outcome = compare_settings(
            ComparisonRequest(
                target=target,
                space=space,
                first=Setting(),
                second=setting,
                plan=Plan.fixed(pairs),
                budget_s=budget_s,
                guard=guard,
                remeasure=True,
                watch=watch,
            ),
            store,
        )
        program = f"{target.app.name} on {target.ranks} ranks"
        found.append(_judged(evidence.source, program, outcome))
    return found


def _judged(source: str, program: str, outcome: ComparisonOutcome) -> Recheck:
    if outcome.failed:
        return Recheck(source, program, "worse", outcome.failed, outcome.to_json())
    return Recheck(source, program, outcome.decision.outcome, outcome.words, outcome.to_json())


def _target(group: str) -> Any:
    return group


def _target_of(check: Any, cluster: Cluster, library: Library) -> Target:
    """The program of the evidence, by name where it is known, else by its command."""
    name = str(check["app"])
    if any(file.name == name for file in listing("apps")):
        app = load_app(name)
    elif "program" in check:
        app = app_from_command(tuple(check["program"]), check["metric"], check["verify"])
    else:
        raise UsageError(
            f"the program {name} of the evidence is not known here (autotune apps); use "
            "--no-compare, or give it a file configs/apps/NAME.toml"
        )
    chosen = check["input"]
    given = app.input(chosen)
    return Target(
        app=app,
        input=chosen or app.default_input or None,
        ranks=int(check["ranks"]),
        cluster=cluster,
        library=library,
        cores=cluster.cores or (cluster.cores_per_node or describe().cores) * cluster.nodes,
        timeout_s=given.timeout_s or app.timeout_s,
        clean_env=True,
    )
