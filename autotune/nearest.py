"""The known names nearest to a mistyped one, by edit distance."""

from __future__ import annotations

from collections.abc import Iterable

_SHORT, _LONG = 6, 24
"""Names below the first length may differ by one letter, those above the second one by three."""


def nearest(name: str, candidates: Iterable[str], most: int = 2) -> list[str]:
    """The candidates that differ from ``name`` by few letters, the nearest first, at most ``most``.

    Capitals do not count as differences between names, but decide between equally near ones.
    """
    lower = name.lower()
    limit = 1 if len(name) < _SHORT else 2 if len(name) < _LONG else 3
    # With at most n edits one of n + 1 pieces of the name is left as it was.
    size = -(-len(lower) // (limit + 1))
    pieces = [lower[at : at + size] for at in range(0, len(lower), size)]
    distances: dict[str, tuple[int, int, str]] = {}
    for candidate in candidates:
        other = candidate.lower()
        if abs(len(other) - len(lower)) > limit or not any(piece in other for piece in pieces):
            continue
        distance = edits(lower, other, limit)
        if distance <= limit and candidate != name:
            distances[candidate] = (distance, edits(name, candidate), candidate)
    return sorted(distances, key=distances.__getitem__)[:most]


def edits(one: str, other: str, limit: int | None = None) -> int:
    """Edit distance: letters to insert, delete or change to get ``other`` from ``one``.

    Above ``limit`` any number larger than it may be returned.
    """
    start = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    start = min(len(one), len(other)) if start is None else start
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b)))
        if limit is not None and min(row) > limit:
            return limit + 1
    return row[-1]
