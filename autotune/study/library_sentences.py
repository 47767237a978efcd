"""The switch to another MPI library in sentences, for people; see ``library_switch.py``.

Commands that only read a stored result import this module, which needs no library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.wording import seconds

if TYPE_CHECKING:
    from autotune.study.search_result import SwitchedLibrary


def switch_words(switch: SwitchedLibrary) -> list[str]:
    """The switch in sentences, for people."""
    before, after = switch["before"], switch["after"]
    one, other = (f"{row['name']} {row['version']}" for row in (before, after))
    words = [f"The setting is for {other}, the default for {one} ({before['path']})."]
    words.append(f"Its launcher is {after['launcher']}.")
    if switch["variables"]:
        names = " and ".join(switch["variables"])
        words.append(f"The program loads this library by {names}, which the line below sets.")
    else:
        words.append("The program loads this library without further variables.")
    if switch["links"]:
        words.append(
            f"{switch['links']} is a folder of autotune's cache, with links to the library under "
            "the names that programs ask for: do not remove it, or copy it."
        )
    if not switch["same_family"]:
        words.append(
            f"Options, variables and parameter files for {before['name']} do not apply to it."
        )
    if switch["dropped"]:
        words.append(f"In force under {one} only: {', '.join(switch['dropped'])}.")
    words.append(_start_words(one, other, switch))
    return words


def _start_words(one: str, other: str, switch: SwitchedLibrary) -> str:
    """What the start of the program has to do with the gain, and how long it takes."""
    if switch["timed"] == "wall":
        return "Whole launches were compared, so the gain has the start under each library in it."
    first, second = switch["before"]["start_s"], switch["after"]["start_s"]
    method = "Each run was started anew under its library; the gain is that of the program's figure"
    if first is None or second is None:
        return f"{method}."
    return (
        f"{method}, without what a launch takes beside it: {seconds(first)} under {one}, "
        f"{seconds(second)} under {other} (medians)."
    )
