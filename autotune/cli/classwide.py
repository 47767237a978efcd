"""``autotune classwide``: one setting for a class of programs, chosen, pruned and proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.api.requests import ClasswideRequest
from autotune.cli.anova import one_source
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.notes import once
from autotune.terminal.render import interruption, print_line, to_stderr, write_document

if TYPE_CHECKING:
    from autotune.anova.paired_runs import ClassProgram


@takes_request
def classwide(request: ClasswideRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Find one setting for a class of programs and prove it on every one of them.

    The same command continues an interrupted proof.
    """
    from autotune.anova.class_proof import prove_class
    from autotune.anova.classwide import choose
    from autotune.anova.classwide_result import RESULTS
    from autotune.anova.paired_runs import LOOKS, PRUNE_LOOKS, PairTerms, check_programs, on_machine
    from autotune.api.anova import read_options
    from autotune.api.classwide import (
        class_dataset,
        class_keys,
        class_of,
        in_names_here,
        member,
        outsider,
        own_settings,
        result_of,
    )
    from autotune.api.target import common_library
    from autotune.space import DEFAULT
    from autotune.store import Store
    from autotune.terminal.classwide import print_classwide
    from autotune.terminal.progress import Progress

    dataset = one_source(request.dataset, request.source, "classwide DATASET")
    options = read_options(request.preset, None, 99.9, None)
    dataset_runs, target_request, guard = class_dataset(dataset), request.target, request.guard
    held_out_programs = [word.split(":") for word in request.held_out]
    class_cells = (
        None
        if request.number is None
        else class_keys(dataset, request.number, request.classes, request.apps)
    )
    table_, cells = class_of(
        dataset_runs,
        _words(request.apps),
        [words[0] for words in held_out_programs],
        class_cells,
        target_request.commutative_only,
    )
    rules = table_.joined is not None
    choice = choose(table_, options, request.seed)
    programs: list[ClassProgram] = []
    if request.measure:
        spaces = [
            request.space or (dataset_runs.space_name(cell) if rules else None) for cell in cells
        ]
        say = once(to_stderr)
        programs = [
            member(cell, target_request, space, say, rules)
            for cell, space in zip(cells, spaces, strict=True)
        ]
        programs += [
            outsider(words, target_request, request.space, say, rules)
            for words in held_out_programs
        ]
        targets = [program.target for program in programs]
        common_library(targets, "choose one with --mpi, or programs with --apps")
        choice = choice if rules else in_names_here(choice, programs)
        check_programs(choice.setting, programs)
    proof = None
    if request.measure and choice.setting != DEFAULT:
        with Store.open(store) as database, Progress(None, None, True) as progress:
            terms = PairTerms(
                compare=on_machine(database),
                looks=LOOKS if request.pairs is None else (request.pairs,),
                margin=request.margin,
                prune_looks=PRUNE_LOOKS if request.pairs is None else (request.pairs,),
                budget_s=request.budget_s,
                min_gain=request.min_gain,
                seed=request.seed,
                guard=guard,
                watch=progress,
                say=to_stderr,
                prune=request.prune,
                prune_order=choice.by_effect,
            )
            with interruption(
                "Interrupted. Finished runs are stored; the same command continues the proof."
            ):
                proof = prove_class(choice.setting, programs, terms)
    proven = choice.setting if proof is None else proof.setting
    own = own_settings(dataset_runs, cells, proven, programs) if rules else None
    result = result_of(dataset_runs, choice, proof, programs, target_request.cluster, guard, own)
    path = RESULTS.save(result)
    if write_document(result.to_json(), json_out):
        print_classwide(result, choice, proof)
        print_line(f"result classwide:{result.id}  ({path})", whole=True)


def _words(text: str | None) -> list[str]:
    if text is None:
        return []
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(
            f"--apps {text!r} names no program; expected --apps A,B", code="classwide.no_program"
        )
    return words
