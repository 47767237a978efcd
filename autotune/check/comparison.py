"""The command that proves a corrected line: ``autotune compare`` of what differs in both lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autotune.check.corrections import YIELD
from autotune.check.launch_line import LaunchLine, parse_line
from autotune.targets.wrapped_launcher import is_assignment, split_wrappers
from runner.mpi.intel import WAIT_MODE
from runner.mpi.library import Library

_ALWAYS = frozenset({YIELD, WAIT_MODE})
"""Parameters that autotune itself sets where ranks outnumber the cores."""
_PLACEMENT = {"map-by": "map_by", "bind-to": "bind_to", "rank-by": "rank_by"}


def comparison_command(
    line: LaunchLine, corrected: tuple[str, ...], library: Library | None
) -> tuple[str, ...] | None:
    """The words that compare both lines; None if they differ in more than a setting.

    autotune starts ranks with the library's own launcher, so lines of srun have no such command.
    """
    parts, _ = split_wrappers((*line.before, line.launcher))
    if line.is_srun or parts.first:
        return None
    other = parse_line(corrected, library)
    first, second = _setting(line), _setting(other)
    names = {name for name in {*first, *second} if first.get(name) != second.get(name)}
    base = _without(line, names)
    if not names or names & _ALWAYS or base.words != _without(other, names).words:
        return None
    settings = (
        _text({n: v for n, v in values.items() if n in names}) for values in (first, second)
    )
    parts, _ = split_wrappers((*base.before, line.launcher))
    before = () if parts.before == ["env"] else parts.before
    program = (base.launcher, *(word for option in base.options for word in option.words))
    return (*before, "autotune", "compare", *settings, "--", *program, *parts.behind, *base.program)


def _setting(line: LaunchLine) -> dict[str, str]:
    """Parameters, variables and placement of a line, by the names of settings."""
    values = dict(line.assignments)
    for option in line.options:
        name = _name(option.bare, option.values)
        if name is not None:
            values[name] = option.values[-1]
    return values | line.variables


def _name(bare: str, values: tuple[str, ...]) -> str | None:
    """The name under which a setting has what an option sets; None for other options."""
    if bare in _PLACEMENT and len(values) == 1:
        return _PLACEMENT[bare]
    return values[0] if bare == "mca" and len(values) == 2 else None


def _without(line: LaunchLine, names: set[str]) -> LaunchLine:
    """The line without what sets one of these names."""
    for name in names & line.variables.keys():
        line = line.without_variable(name)
    options = tuple(one for one in line.options if _name(one.bare, one.values) not in names)
    before = tuple(
        word
        for word in line.before
        if not (is_assignment(word) and word.partition("=")[0] in names)
    )
    return replace(line, options=options, before=before)


def _text(values: Mapping[str, str]) -> str:
    quoted = {n: f'"{v}"' if "," in v else v for n, v in values.items()}
    return ",".join(f"{name}={value}" for name, value in sorted(quoted.items())) or "default"
