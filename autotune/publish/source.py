"""The source of a publication: a study, a class-wide result or a rules table, with doubts about it.

The doubts are in :mod:`autotune.publish.doubts`. If the user insists, the file says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.anova.classwide_result import RESULTS, ClasswideResult, evidence_checks
from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult
from autotune.config.cluster import Cluster
from autotune.dialects import dialect
from autotune.dialects.translation import translate
from autotune.errors import UsageError
from autotune.measurement.result_checks import UNCHECKED, StoredAnswer, checks_words, unchecked
from autotune.notes import Note
from autotune.publish.content import GROUPS, Content, Evidence, commutative_part
from autotune.publish.doubts import common_doubts, machine_doubts, program_doubts, study_doubts
from autotune.publish.layout_variables import layout_content
from autotune.publish.plain_figure import plain_figure
from autotune.publish.source_place import latest_to_publish
from autotune.space import Setting, load_space
from autotune.space.library_choice import MPI
from autotune.space.outside_names import check_config_name, check_groups, known_names
from autotune.store import Store, StudyKey, StudyRecord
from autotune.store.keys import BEFORE, CLEAN_ENV, FRESH_DIR
from autotune.study.search_result import damaged_result
from autotune.targets.provenance import Provenance
from autotune.wording import UNGUARDED
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.srun import MPI_TYPE, SrunLaunch
from runner.types import RunRecord

NOTHING = "it recommends the default, because nothing was proven to be faster"


@dataclass(frozen=True)
class PublicationSource:
    """What to publish, its evidence, and the doubts about it (empty: none)."""

    content: Content
    evidence: Evidence
    doubts: tuple[Note, ...]
    classwide: bool


def read_source(
    source_id: str | None,
    cluster: Cluster,
    library: Library,
    store: Store,
    insist: bool = False,
    spaces: Sequence[str] = (),
    *,
    user_names_library: bool = True,
    commutative_only: bool = False,
) -> PublicationSource:
    """The source ``study:ID``, ``classwide:ID`` or ``collectives:ID``; None: the latest class-wide
    one for ``cluster``.

    With ``insist`` the best unproven setting of a study is taken if none was proven.  ``spaces``:
    names or files of spaces whose parameters the source may have, in addition to those known here.
    ``user_names_library``: whether the user has named ``library``; without that, a setting that was
    proven under another library than the default's is not published.
    ``commutative_only``: all operations of all programs that will load the files commute; without
    it, values that give wrong results with others are refused (``published.unsafe``), unless the
    source itself was made with that option for the whole cluster.
    Raises UsageError if there is no such result, if a file can hold nothing of it, or for a
    parameter that is not accepted from a database or a file.
    """
    source = _read(source_id, cluster, library, store, insist, user_names_library)
    groups = source.content.groups
    check_groups(groups, known_names(library, spaces), source.evidence.source)
    all_commute = commutative_only or source.evidence.commutative_only
    unsafe = commutative_part(source.content, library.family)
    if unsafe and not all_commute:
        raise UsageError(
            f"{source.evidence.source} is not published: a file is for every program that loads "
            "it, and programs whose operations do not commute (MPI_Op_create) would get wrong "
            f"results by {', '.join(unsafe)}.\n--commutative-only says that there is no such "
            "program; the file then says so, too",
            code="published.unsafe",
        )
    evidence = replace(source.evidence, commutative_only=bool(unsafe))
    return replace(source, evidence=evidence)


def _read(
    source_id: str | None,
    cluster: Cluster,
    library: Library,
    store: Store,
    insist: bool,
    user_names_library: bool,
) -> PublicationSource:
    kind, colon, ident = (source_id or "classwide:").partition(":")
    if kind == "study" and ident:
        return _from_study(
            store.find_study(ident), cluster, library, store, insist, user_names_library
        )
    if kind == "classwide" and colon:
        left_out: list[Note] = []
        result = _classwide(ident, cluster.name, left_out)
        source = _from_classwide(result, cluster, library)
        return replace(source, doubts=(*source.doubts, *left_out))
    if kind == "collectives" and colon:
        return _from_collectives(TABLES.find(ident), cluster, library)
    raise UsageError(
        f"--from {source_id!r} is not understood; expected study:ID (autotune studies), "
        "classwide:ID (autotune classwide) or collectives:ID (autotune collectives)",
        code="publish.source_syntax",
    )


def _from_study(
    study: StudyRecord,
    cluster: Cluster,
    library: Library,
    store: Store,
    insist: bool,
    user_names_library: bool,
) -> PublicationSource:
    result = study.result
    if result is None or "recommended" not in result:
        raise UsageError(
            f"study {study.hash[:12]} has no result to publish (status {study.status}); finish "
            "the search first",
            code="study.no_result",
        )
    values = result["recommended"]["setting"]
    has_guard = study.key.has_guard
    is_proven = bool(values) and result["status"] == "recommended" and has_guard
    best_values = (result.get("best") or {}).get("setting")
    if not values and insist:
        values = best_values
    if not values:
        why = NOTHING if has_guard else f"it was {UNGUARDED}, so it proves nothing"
        advice = (
            "--force publishes the best setting that was seen, and writes into the file that it "
            "is not proven."
            if best_values
            else "No setting looked faster than the default, so --force has nothing to publish "
            "either: search again, or in a larger space."
        )
        raise UsageError(
            f"study {study.hash[:12]}: {why}; there is nothing to publish.\n{advice}",
            code="publish.nothing_proven",
        )
    setting = Setting(values)
    other = _other_library(study, setting, library, user_names_library)
    runs = [r for r in store.runs(study.id, setting_key=setting.key) if r.record.valid]
    if not runs or runs[-1].launched is None:
        raise UsageError(
            f"study {study.hash[:12]} has no valid run of {setting.key}; search again",
            code="study.no_run",
        )
    ends = result.get("gain_ci95") if is_proven else None
    key = study.key
    evidence = Evidence(
        source=f"study:{study.hash[:12]}",
        proven=is_proven,
        status=str(result["status"]),
        setting=setting.key,
        programs=(_program(key.app.name, key.app.input, key.ranks),),
        runs=int(result.get("search_runs", 0)) + int(result.get("confirmation_runs", 0)),
        gain=result.get("gain") if is_proven else None,
        gain_ci=None if ends is None else (ends[0], ends[1]),
        date=study.created_at[:10],
        mpi_family=other.family if other else key.mpi.family,
        mpi_version=other.version if other else key.mpi.version,
        machine=f"{key.machine.cpu_model}, {key.machine.cores} cores",
        cluster=key.cluster,
        mpi_bin=other.bin if other else key.mpi.path,
        # Nothing was proven against the default of this library.
        check=(_check_of(study, runs[-1].record) | ({"gain": None} if other else {}),),
        guarded=has_guard,
        checked=_checks_line(study),
        over=f"{key.mpi.family} {key.mpi.version}" if other else "",
    )
    doubts = (
        _contradictions(result, values)
        + study_doubts(study, cluster)
        + program_doubts(store, study)
        + common_doubts(evidence, cluster, library)
    )
    content = _with_plugin(_content(runs[-1].launched), key, library)
    return PublicationSource(content, evidence, tuple(doubts), False)


def _with_plugin(content: Content, key: StudyKey, library: Library) -> Content:
    """The content with the plug-in of Slurm with which the ranks were connected, if it was given
    or chosen for the launch: without it, the default may connect none."""
    launcher = adapter(library)
    chosen = launcher.plugin if isinstance(launcher, SrunLaunch) else ""
    plugin = key.conditions.get("placement", {}).get(MPI_TYPE, chosen)
    has_own = MPI_TYPE in content.groups.get("placement", {})
    return content.with_value("placement", MPI_TYPE, plugin) if plugin and not has_own else content


def _program(name: str, input_name: str | None, ranks: int) -> str:
    """A program of the evidence in a few words, with its input if it has one."""
    return f"{name}{f' {input_name}' if input_name else ''} {ranks}x"


def _contradictions(result: Mapping[str, Any], values: Mapping[str, Any]) -> list[Note]:
    """The objections to the setting that is published."""
    rows = result.get("contradictions") or ()
    return [Note.from_json(row) for row in rows if row["data"].get("setting") == values]


def _checks_line(study: StudyRecord) -> str:
    """What was checked of the results, in one line, with the reasons why they were not."""
    checks = (study.result or {}).get("checks")
    reasons = unchecked(StoredAnswer.of_study(study))
    try:
        sentences = [] if checks is None else [checks_words(checks)]
    except (LookupError, TypeError) as problem:
        raise damaged_result(problem) from None
    sentences += [note.words for note in reasons if checks is None or note.code != UNCHECKED]
    return "; ".join(sentences)


def _other_library(
    study: StudyRecord, setting: Setting, library: Library, user_names_library: bool
) -> Library | None:
    """The library that a setting names, which must be ``library``; None if it names none.

    Raises UsageError if the user did not name it, or if the setting has nothing else.
    """
    if MPI not in setting:
        return None
    origin, own = f"study {study.hash[:12]}", f"{library.family}-{library.version}"
    first = f"{study.key.mpi.family} {study.key.mpi.version}"
    if len(setting) == 1:
        raise UsageError(
            f"{origin}: its answer is another MPI library ({setting.key}) with its own defaults; a "
            "file cannot choose the library.\n"
            f"autotune show {study.hash[:12]} has the command line",
            code="publish.other_library",
        )
    if setting[MPI] != own or not user_names_library:
        raise UsageError(
            f"{origin}: its setting is for the MPI library {setting[MPI]}, and was proven against "
            f"the default of {first}. Files for that library have no effect under {first}.\nTo "
            f"publish them anyway, name the library: --mpi {setting[MPI]}",
            code="publish.other_library",
        )
    return library


def _check_of(study: StudyRecord, run: RunRecord) -> dict[str, Any]:
    """How to run the program again, for a later check; ``run`` is one with the setting."""
    app = study.key.app
    words = {"app": app.name, "input": app.input, "ranks": study.key.ranks}
    origin = (study.result or {}).get("origin")
    check = words | {
        "program": [app.program, *app.argv],
        "metric": app.metric,
        "verify": app.verify,
        "options": study.key.conditions.get("launch_options", []),
        "placement": study.key.conditions.get("placement", {}),
        "origin": None
        if origin is None
        else Provenance.from_json(origin, study.hash[:12]).to_json(),
        **({CLEAN_ENV: True} if study.key.conditions.get(CLEAN_ENV) else {}),
        **_reading(study.key),
        **_preparation(study.key),
    }
    return check | _proven_times(study.result or {}, check, run)


def _proven_times(
    result: Mapping[str, Any], check: Mapping[str, Any], run: RunRecord
) -> dict[str, Any]:
    """The times of the default and of the setting in seconds, and what makes a printed number one.

    ``scale`` is a time in seconds divided by the printed number, or times a printed rate; None if
    the wall time counts.  Empty without a proven gain, and if the number is printed in a form that
    only autotune reads ("1m23s").
    """
    default, gain = (result.get("default") or {}).get("median_s"), result.get("gain")
    if not default or not gain or result["status"] != "recommended":
        return {}
    number, scale = plain_figure(check, run.stdout_tail), None
    if check["metric"] is not None:
        if not number or run.metric_s is None:
            return {}
        scale = run.metric_s * number if run.metric_rate else run.metric_s / number
    return {"proven": {"default_s": default, "setting_s": default / (1 + gain), "scale": scale}}


def _preparation(key: StudyKey) -> dict[str, Any]:
    """What is done before each run of the program; it is only shown, never carried out."""
    return {name: key.conditions[name] for name in (BEFORE, FRESH_DIR) if name in key.conditions}


def _reading(key: StudyKey) -> dict[str, Any]:
    """What its figure is, the choice of it, and its standard input, where not the defaults."""
    conditions = {"metric_choice": key.conditions.get("metric_choice"), "stdin": key.stdin}
    rate = {"metric_rate": True} if key.conditions.get("metric_rate") else {}
    return {name: str(value) for name, value in conditions.items() if value} | rate


def _classwide(ident: str, cluster: str, left_out: list[Note]) -> ClasswideResult:
    """The result; ``left_out`` gets those that cannot be read."""
    if ident:
        return RESULTS.find(ident)
    proven_result = latest_to_publish(cluster, left_out.append)
    if proven_result is None:
        newest = RESULTS.latest(cluster)
        remark = f" (the newest, classwide:{newest.id}, is not: {newest.why})" if newest else ""
        raise UsageError(
            f"there is no proven class-wide result for cluster {cluster}{remark}: make one "
            "with autotune classwide, or publish the setting of a study with --from "
            "study:ID" + "".join(f"\n{note.words}" for note in left_out),
            code="publish.no_classwide",
        )
    return proven_result


def _from_classwide(
    result: ClasswideResult, cluster: Cluster, library: Library
) -> PublicationSource:
    if not result.setting:
        raise UsageError(
            f"classwide:{result.id}: {NOTHING}; there is nothing to publish",
            code="publish.nothing_proven",
        )
    if result.programs is None:
        name = check_config_name("spaces", result.space, f"classwide:{result.id}")
        content = _content(load_space(name, library=library).launched(result.setting))
    else:
        content = layout_content(result, library.family, cluster.nodes)
    programs = result.evidence
    has_guard = result.status != "unguarded"
    evidence = Evidence(
        source=f"classwide:{result.id}",
        proven=result.proven,
        status=result.status,
        setting=result.setting.key,
        programs=tuple(_program(e.app, e.input, e.ranks) for e in programs),
        runs=2 * sum(e.pairs for e in programs),
        gain=result.gain if has_guard else None,
        gain_ci=(result.lo, result.hi) if has_guard and result.gain is not None else None,
        date=result.date[:10],
        mpi_family=result.mpi.get("name", ""),
        mpi_version=result.mpi.get("version", ""),
        machine=result.machine,
        cluster=result.cluster,
        # A program's default does not run on a runtime, so that the variables change nothing there.
        check=()
        if result.programs is not None
        else tuple(
            {
                "app": e.app,
                "input": e.input,
                "ranks": e.ranks,
                # A program on which no gain was shown claims no gain.
                "gain": e.gain if has_guard and e.lo is not None and e.lo > 0 else None,
            }
            for e in programs
        ),
        guarded=result.status != "unguarded",
        checked=evidence_checks(programs),
    )
    doubts = common_doubts(evidence, cluster, library) + machine_doubts(result.machine)
    return PublicationSource(content, evidence, tuple(doubts), True)


def _from_collectives(
    result: CollectiveResult, cluster: Cluster, library: Library
) -> PublicationSource:
    if not result.has_changes:
        raise UsageError(
            f"collectives:{result.id}: no entry of its tables was proven to be faster; there is "
            "nothing to publish",
            code="publish.nothing_proven",
        )
    parts = [part for part in result.parts if part.has_changes]
    # Gains of the entries that differ from the library's own choice.
    gains = [row.gain for part in parts for row in part.evidence if row.verdict == "better"]
    rules, status = result.rules, "recommended" if result.is_proven else "unguarded"
    is_proven, family = result.is_proven, result.mpi["name"]
    if family != library.family:
        rules, is_proven, status = _translate_rules(result, library), False, "translated"
    evidence = Evidence(
        source=f"collectives:{result.id}",
        proven=is_proven,
        checked="results were not checked: the micro-benchmark only times the operations",
        status=status,
        setting=f"{len(rules)} rules for {', '.join({p.operation: 0 for p in parts})}",
        programs=tuple(_program(part.operation, None, part.ranks) for part in parts),
        runs=sum(part.launches for part in parts),
        gain=statistics.median(gains) if gains and is_proven else None,
        date=result.date[:10],
        mpi_family=family,
        mpi_version=result.mpi["version"],
        machine=result.machine,
        cluster=result.cluster,
        check=tuple(
            {
                "app": f"micro {part.operation}",
                "input": None,
                "ranks": part.ranks,
                "program": list(part.check),
                "metric": "json:seconds",
                "verify": None,
            }
            for part in parts
        ),
        guarded=result.guarded,
        commutative_only=result.commutative_only,
    )
    doubts = common_doubts(evidence, cluster, library) + machine_doubts(result.machine)
    if family != library.family:
        doubts.append(
            Note(
                "rules.translated",
                f"its algorithms were translated from {family} by name; none was measured here",
                {"from": family},
            )
        )
    return PublicationSource(Content(rules=rules), evidence, tuple(doubts), True)


def _translate_rules(result: CollectiveResult, library: Library) -> tuple[Rule, ...]:
    """The rules in the words of another family; raises UsageError if it has no such algorithms."""
    words = dialect(library.family)
    theirs = {part.operation: words.names(library, part.operation) for part in result.parts}
    families = (result.mpi["name"], library.family)
    return translate(result.rules, result.algorithms, families, theirs)


def _content(launch_groups: Mapping[str, Mapping[str, str]]) -> Content:
    """The part of a launch that files can hold; raises UsageError if there is more."""
    left = [name for group in launch_groups if group not in GROUPS for name in launch_groups[group]]
    if left:
        # A program option is stored with its place for a value: "-nk {nk}".
        words = ", ".join(name.partition(" ")[0].strip("{}") for name in left)
        raise UsageError(
            f"the setting contains {words}: values of the program and numbers of "
            "processes cannot be published as defaults of an MPI library.\nStart the program as "
            "autotune show prints it, or search again in a space without them (autotune search "
            "--space openmpi ...).",
            code="publish.other_library",
        )
    return Content({g: dict(v) for g, v in launch_groups.items() if v})
