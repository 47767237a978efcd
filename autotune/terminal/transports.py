"""Terminal output of what carried the messages of runs, and by which protocols."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.api.carriers import Carriers
from autotune.terminal.render import print_hanging, print_line
from runner.types import PROTOCOLS


def print_transports(runs: Mapping[str, Carriers]) -> None:
    """Print what carried the messages, by the names of settings; nothing if nothing was seen."""
    if not any(runs.values()):
        return
    print_line()
    by_size = any(name.startswith(PROTOCOLS) for carriers in runs.values() for name in carriers)
    print_line(f"what carried the messages{', and how, by their bytes' if by_size else ''}")
    for setting, carriers in runs.items():
        if carriers:
            print_hanging("  ", f"{setting}:")
        for name, words in carriers.items():
            print_hanging("    ", f"{name.removeprefix(PROTOCOLS)}: {words}")
