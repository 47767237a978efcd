"""The end of a check: all processes' journals together, and the file with what they say.

A program may run several jobs; the file has all of them. It is written anew after each one, by
process 0.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from runner.files import write_atomically
from runner.runtimes.check.conflicts import Conflicts, find
from runner.runtimes.check.findings import (
    GraphInfo,
    GraphRace,
    Races,
    Verdict,
    as_json,
    strongest,
    verdicts,
)
from runner.runtimes.check.journal import Journal
from runner.runtimes.check.memory import WRITTEN
from runner.runtimes.check.order import Skeleton
from runner.runtimes.check.wanted import FILE


@dataclass
class Results:
    """What all jobs of this program have shown."""

    graphs: list[str] = field(default_factory=list)
    races: list[GraphRace] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    contents: list[dict[str, str]] = field(default_factory=list)
    """For each job, a hash of what the regions left in each array."""
    pieces: int = 0
    conflicts: int = 0


_results = Results()


def close(
    journal: Journal, graphs: Sequence[GraphInfo], neighbours: Sequence[Sequence[int]], comm: Any
) -> None:
    """Judge a job.  Collective over ``comm``; None: one process."""
    conflicts = find(journal)
    contents = _contents(journal)
    for piece in journal.pieces:
        piece.touched = any(
            bool(journal.memory.blocks[n].address) or (runs.flags & WRITTEN > 0).any()
            for n, runs in piece.runs.items()
        )
        piece.runs = {}
    own = Skeleton(journal.pieces, journal.chains, neighbours)
    judged = verdicts(graphs, own, conflicts)
    parts = own, (conflicts.earlier, conflicts.later), judged, contents, graphs
    gathered = [parts] if comm is None else comm.gather(parts)
    races, wanted_spots = None, None
    if gathered is not None:
        # A process whose ranks have not entered a graph does not know it.
        known = max((part[4] for part in gathered), key=len)
        races = Races(known, [part[0] for part in gathered], [part[1] for part in gathered])
        chosen = races.chosen()
        firsts = [pairs[0] for _, pairs in chosen]
        wanted_spots = [[n for p, n in firsts if p == process] for process in range(len(gathered))]
    mine: list[int] = (wanted_spots or [[]])[0] if comm is None else comm.scatter(wanted_spots)
    texts = {n: _describe(journal, conflicts, n) for n in mine}
    all_texts = [texts] if comm is None else comm.gather(texts)
    if gathered is None or races is None or all_texts is None:
        return
    _results.graphs += [graph.name for graph in known if graph.name not in _results.graphs]
    for group, pairs in chosen:
        process, number = pairs[0]
        _results.races.append(races.race(group, pairs, all_texts[process][number]))
    _results.verdicts = strongest([_results.verdicts, *(part[2] for part in gathered)])
    _results.contents.append(_digests([part[3] for part in gathered]))
    _results.pieces += sum(len(part[0].pieces) for part in gathered)
    _results.conflicts += sum(len(part[1][0]) for part in gathered)
    _write()


def _describe(journal: Journal, conflicts: Conflicts, number: int) -> str:
    block, starts, stops = conflicts.spots[number]
    return journal.memory.blocks[block].describe(starts.tolist(), stops.tolist())


def _contents(journal: Journal) -> dict[str, list[str]]:
    """Hashes of the bytes that regions have written, by the arrays' names."""
    masks: dict[int, np.ndarray] = {}
    for piece in journal.pieces:
        for number, runs in piece.runs.items():
            block = journal.memory.blocks[number]
            if not block.address or block.shown is None:
                continue
            written = runs.flags & WRITTEN > 0
            if not written.any():
                continue
            mask = masks.setdefault(number, np.zeros(block.size, bool))
            for start, stop in zip(runs.starts[written], runs.stops[written], strict=True):
                mask[start:stop] = True
    hashes: dict[str, list[str]] = defaultdict(list)
    for number, mask in masks.items():
        block = journal.memory.blocks[number]
        memory = (ctypes.c_ubyte * block.size).from_address(block.address)
        data = np.frombuffer(memoryview(memory), np.uint8)
        hashes[block.name].append(hashlib.sha256(data[mask].tobytes()).hexdigest())
    return hashes


def _digests(parts: Sequence[dict[str, list[str]]]) -> dict[str, str]:
    """One hash for each name, over the arrays of all ranks and processes."""
    whole: dict[str, list[str]] = defaultdict(list)
    for process, hashes in enumerate(parts):
        for name, digests in hashes.items():
            whole[name] += [f"{process}:{digest}" for digest in digests]
    return {
        name: hashlib.sha256(" ".join(sorted(digests)).encode()).hexdigest()
        for name, digests in sorted(whole.items())
    }


def _write() -> None:
    document = {
        "graphs": _results.graphs,
        "races": [as_json(race) for race in _merged(_results.races)],
        "dependencies": [as_json(verdict) for verdict in _results.verdicts],
        "contents": _results.contents,
        "pieces": _results.pieces,
        "conflicts": _results.conflicts,
    }
    write_atomically(Path(os.environ[FILE]), json.dumps(document))


def _merged(races: Sequence[GraphRace]) -> list[GraphRace]:
    """The races, each once."""
    merged: dict[tuple[str, ...], GraphRace] = {}
    for race in races:
        key = race.kind, race.graph, race.region, race.dependency, race.first.region
        if key in merged:
            race = replace(merged[key], pairs=merged[key].pairs + race.pairs)
        merged[key] = race
    return list(merged.values())
