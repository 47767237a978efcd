"""Terminal output of parameter spaces."""

from __future__ import annotations

from autotune.api.spaces import ActiveParameters, SpaceWords, space_words
from autotune.space import Parameter, Space
from autotune.space.check import SpaceReport
from autotune.terminal.render import print_line, print_table
from runner.mpi.library import Library, ParamInfo

ENUM_WIDTH = 60


def _levels(parameter: Parameter) -> str:
    return " ".join(str(level) for level in parameter.levels)


def _kind(info: ParamInfo) -> str:
    names = " ".join(info.enum.values())
    return names if info.enum and len(names) <= ENUM_WIDTH else info.type


def print_space(space: Space, library: Library) -> None:
    """Print the parameters and levels of a space."""
    rows = [[p.name, _levels(p), "-" if p.default is None else str(p.default)] for p in space]
    title = (
        f"{space.name} on {library.family} {library.version}: {space.combinations():.3g} settings"
    )
    print_table(title, ["parameter", "levels", "default"], rows)
    if space.derived:
        print_line("derived values:")
        for name, expr in space.derived.items():
            print_line(f"  {name} = {expr}")
    if space.constraints:
        print_line("constraints:")
        for rule in space.constraints:
            print_line(f"  {rule}")
    if space.absent:
        print_line("not available in this MPI library:")
        for missing, why in space.absent.items():
            print_line(f"  {missing}: {why}")
    _print_words(space_words(space))


def _print_words(layout: SpaceWords | None) -> None:
    """Print the words of layouts, unless the space has none."""
    if layout is None:
        return
    print_line("in the words of layouts:")
    for word, rule in layout.words.items():
        print_line(f"  {word} = {rule}")
    print_line("parameters without a word:")
    for name, why in layout.own.items():
        print_line(f"  {name}: {why}" if why else f"  {name}")
    print_line("words without a meaning here:")
    for word, why in layout.absent.items():
        print_line(f"  {word}: {why}")


def print_check(report: SpaceReport) -> None:
    """Print what was found in a space file."""
    for finding in report.findings:
        print_line(str(finding))
    count = len(report.space.parameters) if report.space else 0
    words = f"good: {count} parameters" if report.ok else f"{len(report.errors)} to correct"
    print_line(f"{report.path} on {report.library}: {words}")


def print_parameters(active: ActiveParameters) -> None:
    """Print the parameters that can act, and how many cannot."""
    rows = [[i.name, i.default, _kind(i), i.help] for i in active.parameters]
    print_table("", ["parameter", "default", "kind", "meaning"], rows)
    print_line(f"{len(active.parameters)} parameters")
    if active.idle:
        print_line(
            f"{active.idle} parameters are left out: they cannot act, because the messages go "
            f"by {active.transport} (--all lists them)"
        )
    if active.inferior:
        print_line(
            f"{active.inferior} parameters of components of collectives are left out: another one "
            f"has a higher priority (--all lists them)"
        )
