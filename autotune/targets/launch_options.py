"""What options of a launcher set: library parameters, variables, and parts of the placement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from autotune.config.launcher import LauncherOptions, Match, launcher_options

_SETS = {"--mca", "-mca", "--gmca", "--omca", "-genv", "-env"}
"""Options with the name and the value of a parameter."""
MAPPING = ("map_by", "bind_to", "rank_by")
"""The parts of the placement that say where the ranks of a launch run."""
OVERSUBSCRIBE = "oversubscribe"
"""The modifier with which a mapping allows more ranks than slots."""
_EXPORT = {"-x", "--set-env"}
"""Options with NAME=VALUE of a variable."""


def first_match(tables: Sequence[LauncherOptions], words: Sequence[str]) -> Match | None:
    """The option with which ``words`` begin, in the first of the tables that has it."""
    return next((match for one in tables if (match := one.match(words))), None)


def fixed_parameters(options: Sequence[str]) -> dict[str, str]:
    """Library parameters that launch options set: name -> value."""
    return {
        options[at + 1]: options[at + 2]
        for at, word in enumerate(options)
        if word in _SETS and at + 2 < len(options)
    }


def fixed_names(options: Sequence[str]) -> list[str]:
    """What launch options set: library parameters, variables, and the parts of the placement."""
    matches = [match for match, _ in _split(options, launcher_options()) if match]
    placement = MAPPING if any(one.option.treatment == "places" for one in matches) else ()
    return [*fixed_parameters(options), *sorted(fixed_variables(options)), *placement]


def fixed_variables(options: Sequence[str]) -> set[str]:
    """Names of the environment variables that launch options give the ranks."""
    from_export = {
        options[at + 1].partition("=")[0]
        for at, word in enumerate(options)
        if word in _EXPORT and at + 1 < len(options)
    } | {
        options[at + 1].removeprefix("ALL,").partition("=")[0]
        for at, word in enumerate(options)
        if word == "--export" and at + 1 < len(options)
    }
    by_name = {name for at, name in enumerate(options[1:]) if options[at] in ("-genv", "-env")}
    return from_export | by_name


def without_parameters(options: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Launch options without those that set one of these library parameters.

    Open MPI does not start if a parameter is given twice.
    """
    words, left = list(options), []
    while words:
        word = words.pop(0)
        if word in _SETS and len(words) >= 2:
            name, value = words.pop(0), words.pop(0)
            left += [] if name in names else [word, name, value]
        else:
            left.append(word)
    return tuple(left)


def fixed_placement(options: Sequence[str], tables: Sequence[LauncherOptions]) -> dict[str, str]:
    """Parts of the placement that launch options set: name -> policy."""
    own: dict[str, str] = {}
    for match, _ in _split(options, tables):
        own |= match.placement if match else {}
    return own


def with_placement(
    options: Sequence[str], placement: Mapping[str, str], tables: Sequence[LauncherOptions]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Launch options and placement of a launch in which no part of the placement stands twice.

    Options that set a part that ``placement`` sets are left out: Open MPI 5 does not start if one
    is given twice. If the mapping left out allows more ranks than slots, the other one does.
    ``tables``: the launcher's options, as :func:`~autotune.config.launcher.options_for` finds them.
    """
    rest: list[str] = []
    own = dict(placement)
    for match, words in _split(options, tables):
        theirs = match.placement if match else {}
        if not theirs.keys() & placement.keys():
            rest += words
        elif "map_by" in own and OVERSUBSCRIBE in theirs.get("map_by", "").lower().split(":"):
            own["map_by"] += f":{OVERSUBSCRIBE}"
    return tuple(rest), own


def _split(
    options: Sequence[str], tables: Sequence[LauncherOptions]
) -> Iterator[tuple[Match | None, Sequence[str]]]:
    """Each option with its words; None for a word that is no known option."""
    while options:
        match = first_match(tables, options) if options[0].startswith("-") else None
        count = match.count if match else 1
        yield match, options[:count]
        options = options[count:]
