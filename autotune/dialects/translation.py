"""Rules of one family in the words of another, where both have an algorithm of the same meaning.

A translation is a start for a measurement, never a result: the same algorithm may be slow in
another library.  Intel MPI's presets have numbers only, so nothing is translated to or from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.collective_rules import Rule
from autotune.dialects.base import LIBRARY_DECIDES
from autotune.errors import UsageError

_MPICH_OF = {
    ("bcast", "binomial"): "binomial",
    ("bcast", "scatter_allgather"): "scatter_recursive_doubling_allgather",
    ("bcast", "scatter_allgather_ring"): "scatter_ring_allgather",
    ("reduce", "binomial"): "binomial",
    ("reduce", "rabenseifner"): "reduce_scatter_gather",
    ("allreduce", "recursive_doubling"): "recursive_doubling",
    ("allreduce", "ring"): "ring",
    ("allreduce", "rabenseifner"): "reduce_scatter_allgather",
    ("allgather", "bruck"): "brucks",
    ("allgather", "recursive_doubling"): "recursive_doubling",
    ("allgather", "ring"): "ring",
    ("alltoall", "modified_bruck"): "brucks",
    ("alltoall", "pairwise"): "pairwise",
    ("gather", "binomial"): "binomial",
}
"""(collective, Open MPI's word) -> MPICH's word."""
_OPEN_MPI_OF = {(collective, word): own for (collective, own), word in _MPICH_OF.items()}
_WORDS = {("openmpi", "mpich"): _MPICH_OF, ("mpich", "openmpi"): _OPEN_MPI_OF}
Names = Mapping[str, Mapping[str, str]]
"""collective -> algorithms as rules name them, and their names for people."""


def translated(
    rules: Sequence[Rule], names: Names, families: tuple[str, str], theirs: Names
) -> tuple[Rule, ...]:
    """``rules`` of the first family for the second one; ``names`` and ``theirs`` are the names of
    their algorithms.  Segments and fan-outs are left to the library.

    Raises UsageError for an algorithm without a counterpart.
    """
    made = []
    for rule in rules:
        algorithm = rule.algorithm
        if algorithm != LIBRARY_DECIDES:
            word = names.get(rule.collective, {}).get(algorithm, algorithm)
            meant = _WORDS.get(families, {}).get((rule.collective, word))
            other = theirs.get(rule.collective, {})
            found = next((own for own, shown in other.items() if shown == meant), None)
            if found is None:
                raise UsageError(
                    f"the algorithm {word} of {rule.collective} ({families[0]}) has no counterpart "
                    f"of the same name in {families[1]}; measure there: autotune collectives "
                    f"--operations {rule.collective} --mpi PLACE"
                )
            algorithm = found
        made.append(replace(rule, algorithm=algorithm, fanout=0, segment=0))
    return tuple(made)
