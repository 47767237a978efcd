"""What carried the messages of runs, and by which protocols."""

from __future__ import annotations

from collections.abc import Mapping

from runner.types import PROTOCOLS, TRANSPORT, WINDOWS, ReadBack

Carriers = dict[str, str]
"""``transport``, ``windows`` and the protocols of each call, in words, by their names."""


def carried_by(read_back: Mapping[str, ReadBack]) -> Carriers:
    """What carried the messages of a run: the part of its read-back that is about no parameter."""
    return {
        name: back.effective
        for name, back in sorted(read_back.items(), key=lambda pair: _place(pair[0]))
        if back.effective and is_carrier(name)
    }


def is_carrier(name: str) -> bool:
    """Whether a name of a read-back is of this kind."""
    return name in (TRANSPORT, WINDOWS) or name.startswith(PROTOCOLS)


def _place(name: str) -> tuple[int, str]:
    return ((TRANSPORT, WINDOWS).index(name) if name in (TRANSPORT, WINDOWS) else 2, name)
