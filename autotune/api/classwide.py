"""Class-wide settings: the programs of a class, and the result with its evidence."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from autotune.anova.class_proof import ClasswideProof
from autotune.anova.classwide import Choice
from autotune.anova.classwide_result import ClasswideResult, OwnSetting, Status
from autotune.anova.layout_rules import recorded_setting, rule_table
from autotune.anova.layout_table import speaks_layouts
from autotune.anova.paired_runs import ClassProgram
from autotune.anova.table import STUDY, RunTable, check_apps, dataset_table
from autotune.api.target import find_target
from autotune.datasets import Cell, Dataset, load
from autotune.datasets.plan import with_args
from autotune.errors import UsageError
from autotune.notes import Say
from autotune.space import DEFAULT, Setting
from autotune.space.commutativity import commutative_values
from autotune.space.layout import LayoutMap
from autotune.space.outside_names import check_config_name, check_value
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from autotune.wording import whole_number
from runner.machine import describe_machine


def class_dataset(source: str) -> Dataset:
    """The dataset of a class; raises UsageError without one, and for the study of one program."""
    if source.startswith(STUDY):
        raise UsageError(
            f"{source} has the runs of one program, and a class-wide setting is for several; "
            "expected a dataset (autotune explore PLAN makes one)",
            code="classwide.of_study",
        )
    return load(source)


def class_keys(dataset: str, number: int, count: int | None, apps: str | None) -> set[str]:
    """The keys of the cells of one class.  Raises UsageError for ``apps`` in addition, and for a
    class that does not exist."""
    from autotune.prediction.classes import find_classes
    from autotune.prediction.examples import training_set

    if apps is not None:
        raise UsageError(
            "--class and --apps both define the class; give only one of them",
            code="classwide.conflict",
        )
    classes = find_classes(training_set([dataset]).examples, count).classes
    if number > len(classes):
        raise UsageError(
            f"--class {number}: there are {len(classes)} classes (autotune dataset classes "
            f"{shlex.quote(str(dataset))})",
            code="classwide.class_unknown",
        )
    return set(classes[number - 1].cells)


def class_of(
    dataset: Dataset,
    apps: Sequence[str],
    held_out_apps: Sequence[str],
    keys: set[str] | None = None,
    commutative_only: bool = False,
) -> tuple[RunTable, list[Cell]]:
    """The table of the class and its cells, without the programs that are held out; ``keys``: only
    these cells.

    Settings that give wrong results with operations that do not commute are left out, unless
    ``commutative_only`` says that no program has such operations.

    Raises UsageError if a program is both in the class and held out, or if no program is left.
    """
    both = sorted(set(apps) & set(held_out_apps))
    if both:
        raise UsageError(
            f"{', '.join(both)}: given to --apps and to --held-out; give it to one of them",
            code="classwide.held_out",
        )
    all_cells = [cell for cell in dataset.measured_cells if keys is None or cell.key in keys]
    class_cells = [cell for cell in all_cells if cell.app not in held_out_apps]
    if not class_cells:
        raise UsageError(
            f"dataset {dataset.name}: every program is held out; leave at least one in the class",
            code="classwide.held_out",
        )

    def allowed(setting: Setting) -> bool:
        return commutative_only or not commutative_values(setting)

    if speaks_layouts(dataset, class_cells):
        return _rules(dataset, class_cells, apps, allowed)
    table = dataset_table(dataset, class_cells, apps, allowed)
    return table, [cell for cell in class_cells if cell.key in table.cells]


def _rules(
    dataset: Dataset, cells: list[Cell], apps: Sequence[str], allowed: Callable[[Setting], bool]
) -> tuple[RunTable, list[Cell]]:
    """The table of rules in words of layouts, for cells with different parameters."""
    check_apps(dataset, cells, apps)
    selection = [cell for cell in cells if not apps or cell.app in apps]
    return rule_table(dataset, selection, allowed), selection


def member(
    cell: Cell, place: TargetRequest, space: str | None, say: Say, rules: bool = False
) -> ClassProgram:
    """A cell of a dataset as a program here, on the cluster and MPI library of ``place``.

    ``rules``: its setting obeys a rule in words of layouts.
    Raises UsageError for an unknown application.
    """
    origin = f"the card of the dataset, cell {cell.key}"
    name = check_config_name("apps", cell.app, origin)
    program = {"app": name, "input": cell.input or None, "ranks": cell.ranks}
    target = find_target(place.model_copy(update=program), say)
    if cell.args is not None:
        for word in cell.args:
            check_value("args", word, origin)
        app = with_args(target.app, cell.input or target.app.usual_input, cell.args)
        target = dataclasses.replace(target, app=app)
    return _program(target, space, held_out=False, rules=rules)


def _program(target: Target, space: str | None, *, held_out: bool, rules: bool) -> ClassProgram:
    parameter_space = target.space(space)
    layouts = LayoutMap(parameter_space) if rules else None
    return ClassProgram(target, parameter_space, held_out, layouts)


def outsider(
    words: Sequence[str], place: TargetRequest, space: str | None, say: Say, rules: bool = False
) -> ClassProgram:
    """A held-out program, from the words APP, INPUT and RANKS; ``rules`` as of :func:`member`.

    Raises UsageError.
    """
    name, input_name, text = (*words, *[""] * (3 - len(words)))[:3]
    ranks = whole_number(text)
    if len(words) > 3 or (text and not ranks):
        raise UsageError(
            f"--held-out {':'.join(words)!r} is not understood; expected APP, APP:INPUT or "
            "APP:INPUT:RANKS",
            code="classwide.held_out",
        )
    program = {"app": name, "input": input_name or None, "ranks": ranks}
    target = find_target(place.model_copy(update=program), say)
    return _program(target, space, held_out=True, rules=rules)


def in_names_here(choice: Choice, programs: Sequence[ClassProgram]) -> Choice:
    """The choice with the names that the parameters of its setting have in this MPI library."""
    if not programs:
        return choice
    aliases = programs[0].space.aliases
    values = {aliases.get(name, name): value for name, value in choice.setting.items()}
    order = tuple(aliases.get(name, name) for name in choice.by_effect)
    return dataclasses.replace(choice, setting=Setting(values), by_effect=order)


def own_settings(
    dataset: Dataset, cells: Sequence[Cell], rule: Setting, programs: Sequence[ClassProgram]
) -> tuple[OwnSetting, ...]:
    """Each program's setting that obeys a rule: of its whole space if it is here, else among the
    settings that were recorded."""
    if programs:
        return tuple(
            OwnSetting(p.target.app.name, p.target.input, p.target.ranks, p.own_setting(rule))
            for p in programs
        )
    return tuple(
        OwnSetting(cell.app, cell.input or None, cell.ranks, recorded_setting(dataset, cell, rule))
        for cell in cells
    )


def result_of(
    dataset: Dataset,
    choice: Choice,
    proof: ClasswideProof | None,
    programs: Sequence[ClassProgram],
    cluster: str,
    guard: bool,
    own: tuple[OwnSetting, ...] | None = None,
) -> ClasswideResult:
    """The result to store and publish; ``proof`` is None if nothing was measured.

    ``own``: each program's setting, if the setting of the class is a rule in words of layouts.
    """
    first = programs[0].target if programs else None
    mpi = {"name": first.library.family, "version": first.library.version} if first else {}
    common_fields: dict[str, Any] = {
        "cluster": cluster,
        "machine": describe_machine().fingerprint if programs else dataset.card.machine.fingerprint,
        "mpi": mpi,
        "mpi_choice": None if first is None else first.choice_row,
        "space": programs[0].space.name if programs else "",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "source": f"dataset {dataset.name}",
        "scores": tuple(row.to_json() for row in choice.rows),
        "warnings": choice.warnings,
        "programs": own,
    }
    if proof is None:
        nothing = choice.setting == DEFAULT
        return ClasswideResult(
            status="keep_default" if nothing else "unproven",
            setting=choice.setting,
            method=choice.method,
            why=choice.why,
            **common_fields,
        )
    status: Status = "recommended" if proof.proven else "keep_default"
    if not guard:
        status = "unguarded"
    stands = status == "keep_default"
    return ClasswideResult(
        status=status,
        setting=DEFAULT if stands else proof.setting,
        method="default" if stands else choice.method,
        why=proof.why,
        evidence=proof.evidence,
        margin=proof.margin,
        held_out_shows=proof.held_out_shows,
        pruned=proof.pruned.without,
        pruned_unclear=proof.pruned.unclear,
        not_pruned=proof.pruned.unproven,
        next_step=proof.next_step,
        **_means(proof),
        **common_fields,
    )


def _means(proof: ClasswideProof) -> dict[str, Any]:
    means: dict[str, Any] = {}
    if proof.gain is not None:
        means |= {"gain": proof.gain.gain, "lo": proof.gain.lo, "hi": proof.gain.hi}
    if proof.held_out is not None:
        held_out_gain = proof.held_out
        means |= {
            "held_out_gain": held_out_gain.gain,
            "held_out_lo": held_out_gain.lo,
            "held_out_hi": held_out_gain.hi,
        }
    return means
