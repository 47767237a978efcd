"""Requests of commands that read recorded runs: analyses, models and their evaluation."""

from __future__ import annotations

from autotune.config.option import PATH, Request, option

SOURCE = option(
    None, "--from DATASET", "Same as the argument: a dataset (name or folder) or study:ID."
)
DATASETS = option((), "[DATASET]...", "Datasets to learn from; same as --from DATASET.")
SOURCES = option(
    (),
    "--from DATASET",
    "Dataset to learn from (name or folder of recorded runs); may be repeated.",
)
SPLIT = option(
    None, "--split S", "Use only the cells of this split of the dataset: design or report."
)


class AnovaRequest(Request):
    """The parameters that matter in recorded runs."""

    argument: str | None = option(
        None,
        "DATASET|study:ID",
        "Recorded runs: a dataset (name or folder) or a study (study:ID).",
        completion="sources",
    )
    source: str | None = SOURCE
    preset: str = option(
        "careful",
        "--preset P",
        "Set of defaults. careful: mixed model, p values corrected for the number of parameters, "
        "a level is named only if it beats the default. thesis: one-way model, 99.9 % confidence, "
        "the level with the highest mean.",
    )
    response: str = option(
        "gain",
        "--response R",
        "Quantity that is analysed. gain: gain over the default as a share of the best known "
        "gain; cells where nothing beats the default are left out. log: logarithm of the ratio to "
        "the default's time, winsorised, all cells.",
    )
    model: str | None = option(
        None,
        "--model M",
        "Statistical model: oneway, blocks, mixed, rank. Default: that of --preset.",
    )
    level: float = option(
        99.9, "--level PERCENT", "Confidence level of the test of one parameter, in percent."
    )
    correction: str | None = option(
        None,
        "--correction C",
        "Correction of the p values for many parameters: none, holm, fdr_bh, bonferroni. Default: "
        "that of --preset.",
    )
    by: str | None = option(
        None,
        "--by WAY",
        "Repeat the analysis on parts of the data to see whether it is stable; the parts are "
        "formed by app, input, ranks, cluster, cell.",
    )
    pairs: bool = option(True, "--pairs/--no-pairs", "Test interactions of two parameters.")
    joint: bool = option(
        False, "--joint", "Fit one more model: a mixed model of all parameters that matter."
    )
    picture: str | None = option(
        None, "--picture FILE.html", "HTML file for plots of the level means.", PATH
    )


class ImportanceRequest(Request):
    """The importance of each parameter in recorded runs."""

    argument: str | None = option(
        None,
        "STUDY|DATASET",
        "Study (study:ID), or dataset of recorded runs (name or folder).",
        completion="sources",
    )
    source: str | None = SOURCE
    cell: str | None = option(
        None, "--cell KEY", "Use only this cell of the dataset, given by its key."
    )
    picture: str | None = option(
        None,
        "--picture FILE.html",
        "HTML file for plots of the shares of variance and of the landscape around the best "
        "setting.",
        PATH,
    )
    limit: int = option(15, "--limit N", "Number of parameters to list.", ge=1)
    features: str | None = option(
        None,
        "--features FILE",
        "File written by autotune features. Parameters that act only on MPI features which this "
        "program does not use are left out.",
        PATH,
    )
    seed: int = option(0, "--seed N", "Seed of the random generator (forest, bootstrap).", ge=0)


class TrainRequest(Request):
    """A model from recorded runs."""

    datasets: tuple[str, ...] = DATASETS
    sources: tuple[str, ...] = SOURCES
    features: tuple[str, ...] = option(
        (),
        "--features FILE",
        "With --store: features file of a program whose studies in the database are training data. "
        "May be repeated.",
    )
    model: str = option(
        "auto",
        "--model M",
        "Kind of model: auto (the best one on programs that are left out), knn, mlp, exposure, or "
        "composed (corrections to what the calibration of a machine predicts).",
    )
    preset: str | None = option(
        None, "--preset NAME", "Named set of options: thesis (plain knn or mlp) is the only one."
    )
    split: str | None = SPLIT
    out: str | None = option(
        None,
        "--output -o FILE",
        "Model file to write. Default: the user's model, which autotune predict uses first.",
        PATH,
    )


class EvaluateRequest(Request):
    """How good predictions are for programs left out."""

    datasets: tuple[str, ...] = DATASETS
    sources: tuple[str, ...] = SOURCES
    leave_out: str = option(
        "program",
        "--leave-out WHAT",
        "What is left out and predicted in turn: program; to see whether the model transfers, "
        "cell, cluster, ranks, machine or program+machine; report (all cells that are only for "
        "reporting, at once).",
    )
    models: tuple[str, ...] = option(
        (), "--model M", "Evaluate only this model; may be repeated. Default: all."
    )
    split: str | None = SPLIT
    picture: str | None = option(
        None, "--picture FILE", "SVG file for a picture of the table.", PATH
    )
