"""``autotune classwide``: one setting for a class of programs, chosen, pruned and proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.anova.paired_runs import MARGIN
from autotune.api.anova import PRESETS
from autotune.cli import completion
from autotune.cli import options as o
from autotune.cli.anova import SourceOption, one_source
from autotune.cli.options import opt
from autotune.errors import UsageError
from autotune.terminal.render import console, error_console, write_json
from autotune.wording import parse_duration

if TYPE_CHECKING:
    from autotune.anova.paired_runs import Program


def classwide(
    argument: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="Dataset of recorded runs (written by autotune explore): name or folder.",
            autocompletion=completion.datasets,
            show_default=False,
        ),
    ] = None,
    from_: SourceOption = None,
    apps: Annotated[
        str | None,
        opt(
            "--apps A,B",
            "Programs of the class, separated by commas. Default: all programs of the dataset.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        opt(
            "--class N",
            "Take class number N of autotune dataset classes (classes formed by traced "
            "features). Not together with --apps.",
            min=1,
        ),
    ] = None,
    count: Annotated[
        int | None,
        opt(
            "--classes K",
            "Number of classes that --class refers to. Default: chosen by autotune dataset "
            "classes.",
            min=1,
        ),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        opt(
            "--held-out APP[:INPUT[:RANKS]]",
            "Program on which the setting is proven, but which does not take part in its "
            "choice. May be repeated. Example: cannon:small:4.",
        ),
    ] = None,
    preset: Annotated[
        str, opt("--preset P", f"Set of defaults of the ANOVA: {', '.join(PRESETS)}.")
    ] = "careful",
    measure: Annotated[
        bool, opt("--measure/--no-measure", "Prove the chosen setting by runs on this machine.")
    ] = True,
    do_prune: Annotated[
        bool,
        opt(
            "--prune/--no-prune", "Take out every parameter without which the setting is no slower."
        ),
    ] = True,
    pairs: Annotated[
        int | None,
        opt(
            "--pairs N",
            "Measure exactly N pairs of runs per program. Default: a sequential test that "
            "ends as soon as it is decided.",
            min=6,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        opt(
            "--budget TIME",
            "Machine time for all runs together, for example 30m or 2h. Default: no limit.",
        ),
    ] = None,
    min_gain: Annotated[
        float,
        opt(
            "--min-gain PERCENT",
            "Smallest mean gain over all programs that counts as a gain, in percent.",
            min=0,
            max=50,
        ),
    ] = 2.0,
    margin: Annotated[
        float,
        opt(
            "--margin PERCENT",
            "Largest slowdown against the default that is tolerated for a single program, "
            "in percent. The proof has to show that every program stays within it.",
            min=0.1,
            max=20,
        ),
    ] = 100 * MARGIN,
    seed: Annotated[
        int, opt("--seed N", "Seed of the random generator (choice and order of runs).", min=0)
    ] = 0,
    space: Annotated[
        str | None,
        opt(
            "--space NAME|FILE",
            "Parameter space of the setting. Default: the space of the MPI library.",
        ),
    ] = None,
    cluster: o.ClusterName = "local",
    mpi: o.Mpi = None,
    commutative_only: o.CommutativeOnly = False,
    guard: o.Guard = True,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Find one setting for a class of programs and prove it on every one of them.

    The same command continues an interrupted proof.
    """
    from autotune.anova.classwide import choose
    from autotune.anova.paired_runs import LOOKS, PRUNE_LOOKS, PairTerms, check_programs, on_machine
    from autotune.anova.proof import prove_class
    from autotune.anova.result import RESULTS
    from autotune.api.anova import read_options
    from autotune.api.classwide import class_of, found_class, member, outsider, result_of
    from autotune.datasets import load
    from autotune.space import DEFAULT
    from autotune.store import Store
    from autotune.terminal.classwide import print_classwide
    from autotune.terminal.progress import Progress

    dataset = one_source(argument, from_, "classwide DATASET")
    options = read_options(preset, None, 99.9, None)
    recorded = load(dataset)
    held = [word.split(":") for word in held_out or []]
    found = None if number is None else found_class(dataset, number, count, apps)
    table_, cells = class_of(
        recorded, _words(apps), [words[0] for words in held], found, commutative_only
    )
    choice = choose(table_, options, seed)
    programs: list[Program] = []
    if measure:
        place = (cluster, mpi, space, commutative_only)
        programs = [member(cell, *place) for cell in cells]
        programs += [outsider(words, *place) for words in held]
        check_programs(choice.setting, programs)
    proof = None
    if measure and choice.setting != DEFAULT:
        with Store.open(store) as opened, Progress(None, None, True) as progress:
            terms = PairTerms(
                compare=on_machine(opened),
                looks=LOOKS if pairs is None else (pairs,),
                margin=margin / 100,
                prune_looks=PRUNE_LOOKS if pairs is None else (pairs,),
                budget_s=None if budget is None else parse_duration(budget),
                min_gain=min_gain / 100,
                seed=seed,
                guard=guard,
                watch=progress,
                say=lambda note: error_console().print(note.words, markup=False),
                prune=do_prune,
            )
            try:
                proof = prove_class(choice.setting, programs, terms)
            except KeyboardInterrupt:
                error_console().print(
                    "Interrupted. Finished runs are stored; the same command continues the proof."
                )
                raise
    result = result_of(recorded, choice, proof, programs, cluster, guard)
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
        raise UsageError(
            f"--apps {given!r} names no program; expected --apps A,B", code="classwide.no_program"
        )
    return words
