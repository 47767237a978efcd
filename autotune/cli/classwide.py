"""``autotune classwide``: one setting for a class of programs, chosen, pruned and proven."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from autotune.anova.classwide import Choice, choose
from autotune.anova.pairs import (
    LOOKS,
    MARGIN,
    PRUNE_LOOKS,
    Program,
    Terms,
    check_programs,
    on_machine,
)
from autotune.anova.prove import Proof, prove
from autotune.anova.result import RESULTS, ClasswideResult, Status
from autotune.anova.sources import dataset_table
from autotune.anova.table import Table
from autotune.api.target import find_target
from autotune.cli import options as o
from autotune.cli.anova import PRESETS, SourceOption, one_source, read_options
from autotune.cli.classwide_words import print_classwide
from autotune.cli.options import opt
from autotune.cli.progress import Progress
from autotune.cli.render import console, error_console, write_json
from autotune.datasets import Cell, Dataset, load
from autotune.datasets.prepare import with_args
from autotune.errors import UsageError
from autotune.space import DEFAULT
from autotune.space.trust import check_config_name, check_value
from autotune.store import Store
from autotune.study.duration import parse_duration
from autotune.study.target_request import TargetRequest
from runner.machine import describe


def classwide(
    argument: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET", help="Recorded runs (autotune explore).", show_default=False
        ),
    ] = None,
    from_: SourceOption = None,
    apps: Annotated[str | None, opt("--apps A,B", "The class.  Default: all its programs.")] = None,
    number: Annotated[
        int | None,
        opt(
            "--class N",
            "The class found by features (autotune dataset classes), instead of --apps.",
            min=1,
        ),
    ] = None,
    count: Annotated[
        int | None, opt("--classes K", "With --class: of so many classes.", min=1)
    ] = None,
    held_out: Annotated[
        list[str] | None,
        opt(
            "--held-out APP[:INPUT[:RANKS]]",
            "A program that only proves the setting; may be repeated.",
        ),
    ] = None,
    preset: Annotated[str, opt("--preset P", f"For the ANOVA: {', '.join(PRESETS)}.")] = "careful",
    measure: Annotated[
        bool, opt("--measure/--no-measure", "Prove the choice by running it.")
    ] = True,
    do_prune: Annotated[bool, opt("--prune/--no-prune", "Take out what changes nothing.")] = True,
    pairs: Annotated[
        int | None, opt("--pairs N", "Exactly N pairs a program.  Default: looks.", min=6)
    ] = None,
    budget: Annotated[str | None, opt("--budget TIME", "For all runs: 30m, 2h.")] = None,
    min_gain: Annotated[float, opt("--min-gain PERCENT", "Least mean gain.", min=0, max=50)] = 2.0,
    margin: Annotated[
        float,
        opt(
            "--margin PERCENT",
            "No program may be slower than the default by more; shown of each.",
            min=0.1,
            max=20,
        ),
    ] = 100 * MARGIN,
    seed: Annotated[int, opt("--seed N", "Seed of every random choice.", min=0)] = 0,
    space: Annotated[
        str | None, opt("--space NAME|FILE", "Which parameters the MPI here has.")
    ] = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Find one setting for a class of programs and prove it on every one of them.

    An interrupted proof goes on when the same command is given again.
    """
    dataset = one_source(argument, from_, "classwide DATASET")
    options = read_options(preset, None, 99.9, None)
    recorded = load(dataset)
    held = [word.split(":") for word in held_out or []]
    found = None if number is None else _found_class(dataset, number, count, apps)
    table_, cells = _class_of(recorded, _words(apps), [words[0] for words in held], found)
    choice = choose(table_, options, seed)
    programs: list[Program] = []
    if measure:
        members = [_member(cell, cluster, mpi, space) for cell in cells]
        programs = [*members, *(_outsider(words, cluster, mpi, space) for words in held)]
        check_programs(choice.setting, programs)
    proof = None
    if measure and choice.setting != DEFAULT:
        with Store.open(store) as opened, Progress(None, None, True) as progress:
            terms = Terms(
                compare=on_machine(opened),
                looks=LOOKS if pairs is None else (pairs,),
                margin=margin / 100,
                prune_looks=PRUNE_LOOKS if pairs is None else (pairs,),
                budget_s=None if budget is None else parse_duration(budget),
                min_gain=min_gain / 100,
                seed=seed,
                guard=guard,
                watch=progress,
                say=lambda words: error_console().print(words, markup=False),
                prune=do_prune,
            )
            try:
                proof = prove(choice.setting, programs, terms)
            except KeyboardInterrupt:
                error_console().print("interrupted; the same command goes on where it was")
                raise
    result = _result(recorded, choice, proof, programs, cluster, guard)
    path = RESULTS.save(result)
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        print_classwide(result, choice, proof)
        console().print(f"result classwide:{result.id}  ({path})", markup=False, soft_wrap=True)


def _words(given: str | None) -> list[str]:
    if given is None:
        return []
    words = [word.strip() for word in given.split(",") if word.strip()]
    if not words:
        raise UsageError(f"--apps {given!r} names no program; expected --apps A,B")
    return words


def _found_class(dataset: str, number: int, count: int | None, apps: str | None) -> set[str]:
    """The keys of the cells of one class."""
    from autotune.prediction.classes import find_classes
    from autotune.prediction.sources import training_set

    if apps is not None:
        raise UsageError("--class and --apps both say what the class is; give one of them")
    found = find_classes(training_set([dataset]).examples, count).classes
    if number > len(found):
        raise UsageError(
            f"--class {number}: there are {len(found)} (autotune dataset classes {dataset})"
        )
    return set(found[number - 1].cells)


def _class_of(
    recorded: Dataset, apps: Sequence[str], held: Sequence[str], keys: set[str] | None = None
) -> tuple[Table, list[Cell]]:
    """The table of the class and its cells, without the programs that are held out; ``keys``: only
    these cells."""
    both = sorted(set(apps) & set(held))
    if both:
        raise UsageError(f"{', '.join(both)}: in --apps and in --held-out; it can only be one")
    named = [cell for cell in recorded.cells if keys is None or cell.key in keys]
    chosen = [cell for cell in named if cell.app not in held]
    if not chosen:
        raise UsageError(f"dataset {recorded.name}: every program is held out; none is left")
    found = dataset_table(recorded, chosen, apps)
    return found, [cell for cell in chosen if cell.key in found.cells]


def _member(cell: Cell, cluster: str, mpi: str | None, space: str | None) -> Program:
    origin = f"the card of the dataset, cell {cell.key}"
    name = check_config_name("apps", cell.app, origin)
    target = find_target(_words_of(name, cell.input or None, cell.ranks, cluster, mpi))
    if cell.args is not None:
        for word in cell.args:
            check_value("args", word, origin)
        app = with_args(target.app, cell.input or target.app.usual_input, cell.args)
        target = dataclasses.replace(target, app=app)
    return Program(target, target.space(space), held_out=False)


def _outsider(words: Sequence[str], cluster: str, mpi: str | None, space: str | None) -> Program:
    name, given, ranks = (*words, *[""] * (3 - len(words)))[:3]
    if len(words) > 3 or (ranks and not ranks.isdigit()):
        raise UsageError(
            f"--held-out {':'.join(words)!r} is not understood; expected APP, APP:INPUT or "
            "APP:INPUT:RANKS"
        )
    asked = _words_of(name, given or None, int(ranks) if ranks else None, cluster, mpi)
    target = find_target(asked)
    return Program(target, target.space(space), held_out=True)


def _words_of(
    app: str, given: str | None, ranks: int | None, cluster: str, mpi: str | None
) -> TargetRequest:
    return TargetRequest(
        app=app, input=given, ranks=ranks, cluster=cluster, mpi=mpi, command="classwide"
    )


def _result(
    recorded: Dataset,
    choice: Choice,
    proof: Proof | None,
    programs: Sequence[Program],
    cluster: str,
    guard: bool,
) -> ClasswideResult:
    library = programs[0].target.library if programs else None
    mpi = {"name": library.family, "version": library.version} if library else {}
    shared: dict[str, Any] = {
        "cluster": cluster,
        "machine": describe().fingerprint if programs else recorded.card.machine.fingerprint,
        "mpi": mpi,
        "space": programs[0].space.name if programs else "",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "source": f"dataset {recorded.name}",
        "scores": tuple(row.to_json() for row in choice.rows),
        "warnings": choice.warnings,
    }
    if proof is None:
        nothing = choice.setting == DEFAULT
        return ClasswideResult(
            status="keep_default" if nothing else "unproven",
            setting=choice.setting,
            method=choice.method,
            why=choice.why,
            **shared,
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
        **shared,
    )


def _means(proof: Proof) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if proof.gain is not None:
        found |= {"gain": proof.gain.gain, "lo": proof.gain.lo, "hi": proof.gain.hi}
    if proof.held_out is not None:
        held = proof.held_out
        found |= {"held_out_gain": held.gain, "held_out_lo": held.lo, "held_out_hi": held.hi}
    return found
