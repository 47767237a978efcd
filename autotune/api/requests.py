"""Requests of commands above studies: features, predictions, collectives, classes, campaigns."""

from __future__ import annotations

from typing import Literal

from autotune.config.option import PATH, PERCENT, TIME, Request, late_option, option, part
from autotune.study.study_request import BUDGET, GUARD, MIN_GAIN, SPACE
from autotune.targets.request import TargetRequest

ORDER_SEED = option(0, "--seed N", "Seed of the random generator (order of runs).", ge=0)
_PLACE = set(TargetRequest.model_fields) - {"cluster", "mpi"}
_CLASS = _PLACE - {"commutative_only"}
ALL_COLLECTIVES = "bcast,allreduce,reduce,allgather,alltoall"


class FeaturesRequest(Request):
    """The features of one traced run of a program."""

    out: str = option(
        "app_features.json", "--output -o FILE", "File for the features (JSON).", PATH
    )
    target: TargetRequest = part("commutative_only")
    method: Literal["auto", "pmpi", "mpi4py"] = late_option(
        "auto",
        "--method",
        "How MPI calls are counted. pmpi: by the compiled profiling library, for any program. "
        "mpi4py: in Python, for mpi4py programs. auto: the first of these that works.",
    )
    explain: bool = late_option(
        False, "--list", "List every feature with its unit and definition; run nothing."
    )
    guard: bool = GUARD
    talp: str | None = late_option(
        None,
        "--talp FILE",
        "File for the efficiencies of the run in the JSON of TALP, which talp-pages shows.",
        PATH,
    )


class PredictRequest(Request):
    """A prediction from a features file, or of a layout, and perhaps its check by runs."""

    features: str | None = option(
        None,
        "FEATURES",
        "File written by autotune features. Without it, the layout of --app or -- PROGRAM in "
        "--space is predicted.",
        PATH,
    )
    model: str | None = option(
        None,
        "--model FILE",
        "Model file. Default: the model written by autotune train, else the shipped one.",
    )
    params_file: str | None = option(
        None,
        "--params-file FILE",
        "File for the predicted setting, in the form that mpirun --tune reads.",
        PATH,
    )
    unproven: bool = option(
        False,
        "--unproven",
        "Write --params-file even if the model was not trained on this machine and MPI library.",
    )
    check: bool = option(
        False,
        "--check",
        "Compare the predicted setting with the default on this machine, by running --app or -- "
        "PROGRAM. If no setting is certain enough, compare the one with the best score.",
    )
    run_recorded: bool = option(
        False, "--run-recorded", "With --check: run the command line that is recorded in FEATURES."
    )
    budget_s: float | None = option(
        None,
        "--budget TIME",
        "Machine time for --check, for example 90s or 10m. Default: at most 24 runs.",
        TIME,
        gt=0,
    )
    max_runs: int | None = option(
        None,
        "--runs N",
        "Number of launches for --check, rejected ones included. Default: 24, or no limit with "
        "--budget.",
        ge=1,
    )
    min_gain: float = MIN_GAIN
    target: TargetRequest = part(cluster="cluster")
    space: str | None = SPACE
    cluster: str | None = late_option(
        None,
        "--cluster C",
        "Cluster on which the program will run. Default: the one it was traced on.",
    )
    guard: bool = GUARD


class ClasswideRequest(Request):
    """One setting for the programs of a dataset."""

    dataset: str | None = option(
        None,
        "DATASET",
        "Dataset of recorded runs (written by autotune explore): name or folder.",
        completion="datasets",
    )
    source: str | None = option(
        None, "--from DATASET", "Same as the argument: a dataset (name or folder)."
    )
    apps: str | None = option(
        None,
        "--apps A,B",
        "Programs of the class, separated by commas. Default: all programs of the dataset.",
    )
    number: int | None = option(
        None,
        "--class N",
        "Take class number N of autotune dataset classes (classes formed by traced features). Not "
        "together with --apps.",
        ge=1,
    )
    classes: int | None = option(
        None,
        "--classes K",
        "Number of classes that --class refers to. Default: chosen by autotune dataset classes.",
        ge=1,
    )
    held_out: tuple[str, ...] = option(
        (),
        "--held-out APP[:INPUT[:RANKS]]",
        "Program that takes part in the proof, but not in the choice of the setting. May be "
        "repeated. Example: cannon:small:4.",
    )
    preset: str = option("careful", "--preset P", "Set of defaults of the ANOVA: thesis, careful.")
    measure: bool = option(
        True, "--measure/--no-measure", "Prove the chosen setting by runs on this machine."
    )
    prune: bool = option(
        True,
        "--prune/--no-prune",
        "Take out each parameter, unless the setting is shown to be slower without it.",
    )
    pairs: int | None = option(
        None,
        "--pairs N",
        "Measure exactly N pairs of runs per program. Default: a sequential test that ends as "
        "soon as it is decided.",
        ge=6,
    )
    budget_s: float | None = option(
        None,
        "--budget TIME",
        "Machine time for all runs together, for example 30m or 2h. Default: no limit.",
        TIME,
        gt=0,
    )
    min_gain: float = option(
        0.02,
        "--min-gain PERCENT",
        "Smallest mean gain over all programs that counts as a gain, in percent.",
        PERCENT,
        ge=0,
        le=0.5,
    )
    margin: float = option(
        0.02,
        "--margin PERCENT",
        "Largest slowdown of a single program that is tolerated, in percent. The proof must show "
        "that every program stays within it.",
        PERCENT,
        ge=0.001,
        le=0.2,
    )
    seed: int = option(
        0, "--seed N", "Seed of the random generator (choice and order of runs).", ge=0
    )
    space: str | None = option(
        None,
        "--space NAME|FILE",
        "Parameter space of the setting. Default: the space of the MPI library.",
    )
    target: TargetRequest = part(*_CLASS)
    guard: bool = GUARD


class CalibrateRequest(Request):
    """What the operations of MPI cost on a cluster."""

    ranks: str = option(
        "2,4", "--ranks N,M", "Numbers of ranks, separated by commas; each gets its own table."
    )
    space: str | None = option(
        None,
        "--space NAME|FILE",
        "Parameter space whose levels are measured. Default: that of the MPI library.",
        completion="spaces",
    )
    budget_s: float | None = BUDGET
    seed: int = ORDER_SEED
    target: TargetRequest = part(*_PLACE)
    guard: bool = GUARD


class CollectivesRequest(Request):
    """The fastest algorithm of each collective operation."""

    operations: str = option(
        ALL_COLLECTIVES,
        "--operations A,B",
        "Collective operations to tune, separated by commas. Known: bcast, reduce, "
        "allreduce, allgather, alltoall, gather.",
    )
    ranks: str = option(
        "2,4",
        "--ranks N,M",
        "Communicator sizes (numbers of ranks), separated by commas; each gets its own table.",
    )
    sizes: str | None = option(
        None,
        "--sizes BYTES",
        "Message sizes in bytes: a list (8,64,1k) or a range in factors of 4 (8:1m). Default: 8 "
        "to 1M in powers of 2.",
    )
    pairs: int = option(
        12, "--pairs N", "Largest number of pairs of runs (default, table) in the proof.", ge=6
    )
    min_gain: float = option(
        0.05,
        "--min-gain PERCENT",
        "Smallest gain that an entry of the table must have, in percent.",
        PERCENT,
        ge=0,
        le=0.5,
    )
    multi_object: bool = option(
        False,
        "--mcoll",
        "Compare also collectives in which every rank of a node sends to other nodes (PiP-MColl; "
        "allgather, allreduce). A table cannot select them: the program must call them.",
    )
    budget_s: float | None = BUDGET
    seed: int = ORDER_SEED
    target: TargetRequest = part(*_CLASS)
    guard: bool = GUARD


class ExploreRequest(Request):
    """The cells of a plan, measured into a dataset."""

    plan: str = option(
        ...,
        "PLAN",
        "Name of a plan, or path of its TOML file (cells, settings, blocks to measure).",
        completion="plans",
    )
    out: str | None = option(
        None,
        "-o --out FOLDER",
        "Folder of the dataset. Default: datasets/NAME, with the plan's name.",
        PATH,
    )
    cells: str | None = option(
        None,
        "--cells KEY,KEY",
        "Measure only these cells, given by their keys. Default: all cells of the plan.",
    )
    budget_s: float | None = option(
        None,
        "--budget TIME",
        "Start no block that is expected to end after this time, for example 30m. Default: no "
        "limit.",
        TIME,
        gt=0,
    )
    dry_run: bool = option(
        False, "--dry-run", "Show cells, settings and planned time; run nothing."
    )
    target: TargetRequest = part(*(_PLACE | {"cluster"}))
    guard: bool = GUARD


class GraphCheckRequest(Request):
    """A check of the graphs of a program."""

    setting: str = option(
        "default",
        "--setting -s SETTING",
        "Setting of the runs: default, name=value,name=value, @FILE, or study:ID.",
    )
    target: TargetRequest = part("commutative_only", "metric", "metric_rate", "metric_choice")
    schedules: int = option(
        3,
        "--schedules N",
        "Number of runs: the first one in the order of the source, the others in random orders.",
        ge=1,
    )
    space: str | None = SPACE
