"""The list of commands; each lives in a module of its own and is imported only when it is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from autotune.cli import (
    anova,
    classwide,
    cluster_commands,
    dataset_commands,
    doctor,
    evaluate,
    explore,
    features,
    importance,
    noise,
    predict,
    publish,
    run,
    search,
    space_commands,
    studies,
    testbed_commands,
    train,
    unpublish,
    verify_published,
)

HELP = "Find out how an MPI program should be started on this machine, honestly and in few runs."


def build() -> Callable[..., Any]:
    """The whole command-line interface as one callable."""
    app = typer.Typer(
        name="autotune",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    app.command("search")(search.search)
    app.command("run")(run.run)
    app.command("compare")(run.compare)
    app.command("noise")(noise.noise)
    app.command("explore")(explore.explore)
    app.command("features")(features.features)
    app.command("train")(train.train)
    app.command("predict")(predict.predict)
    app.command("anova")(anova.anova)
    app.command("classwide")(classwide.classwide)
    app.command("importance")(importance.importance_of)
    app.command("studies")(studies.studies)
    app.command("show")(studies.show)
    app.command("export")(studies.export)
    app.command("apps")(cluster_commands.apps)
    app.command("doctor")(doctor.doctor)
    app.command("publish")(publish.publish)
    app.command("unpublish")(unpublish.unpublish)
    app.command("verify-published")(verify_published.verify_published)
    app.add_typer(cluster_commands.cluster, name="cluster")
    app.add_typer(dataset_commands.dataset, name="dataset")
    app.add_typer(space_commands.space, name="space")
    app.add_typer(evaluate.evaluate, name="evaluate")
    app.add_typer(testbed_commands.testbed, name="testbed")
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"autotune {version('mpi-autotune')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Nothing to do before a command."""
