"""MPICH: the algorithms of the general layer, by name, in selection trees.

The default of a table is the library's own choice: within a node often shared memory (release and
gather), which has no other algorithms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autotune.collective_rules import Rule
from autotune.dialects.base import RuleDialect, write_file
from autotune.dialects.mpich_trees import (
    FILE,
    LAYERS_FILE,
    PARAMETERS,
    SUMS,
    changed_layers,
    changed_tree,
    layer_rules,
)
from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space, Value, parse_expression
from runner.mpi.library import Library
from runner.mpi.mpich_tree import algorithm_names, builtin_layers, builtin_tree

_LEFT_OUT = frozenset({"auto", "smp", "ccl", "pairwise_sendrecv_replace"})
"""The library's choice, one that calls the others again, libraries for graphics processors, and one
only for in-place calls."""
_FANOUTS = (4, 8)
_SEGMENTS = (65536,)
"""Values that are tried beside the library's own."""
_CHUNK = "TREE_PIPELINE_CHUNK_SIZE"


class MpichDialect(RuleDialect):
    family = "mpich"
    sums = SUMS

    def parameter(self, operation: str) -> str:
        """Like the others. No rule of a tree is wrong for operations that do not commute: the tree
        passes to an algorithm only calls for which it works (:mod:`autotune.dialects.mpich_trees`).
        """
        return _main(operation)

    def space(self, library: Library, operation: str, facts: Mapping[str, Value]) -> Space:
        words = tuple(self._words(library, operation))
        stem = _stem(operation)
        layer = library.params.get(f"{stem}_POSIX_INTRA_ALGORITHM")
        implications = {layer.name: "mpir"} if layer and "mpir" in layer.enum.values() else {}
        main = Parameter(_main(operation), words, default="auto", implies=implications)
        shapes = [
            Parameter(
                name,
                levels,
                when=parse_expression(
                    " or ".join(f"{_main(operation)} == {word!r}" for word in users)
                ),
            )
            for name, levels, users in _shapes(library, operation, words, int(facts["ranks"]))
        ]
        return Space(f"{operation} algorithms", (main, *shapes), facts=facts)

    def _words(self, library: Library, operation: str) -> dict[str, str]:
        """The library's words for algorithms -> their names in a tree."""
        info = library.params.get(_main(operation))
        tree_names = algorithm_names(library)
        words = [word for word in info.enum.values() if word not in _LEFT_OUT] if info else []
        names_by_word = {word: _name(operation, word) for word in words}
        names_by_word = {word: name for word, name in names_by_word.items() if name in tree_names}
        if not names_by_word:
            raise UsageError(
                f"algorithms of {operation} cannot be chosen here: this MPICH does not list the "
                f"values of {_main(operation)}",
                code="collectives.no_algorithms",
            )
        return names_by_word

    def rule(self, space: Space, operation: str, setting: Setting) -> Rule:
        stem = f"{_stem(operation)}_"
        rule = Rule(operation, 1, 0, _name(operation, str(setting[_main(operation)])))
        for name, value in setting.items():
            if name == f"{stem}{_CHUNK}":
                rule = replace(rule, segment=int(value))
            elif name.endswith("_KVAL"):
                rule = replace(rule, fanout=int(value))
        return rule

    def loading(
        self, rules: Sequence[Rule], library: Library, place: Path, stem: str
    ) -> tuple[Parameter, ...]:
        """The tree of algorithms, and the tree of layers if the rules need it."""
        algorithms, layers = builtin_tree(library), builtin_layers(library)
        if algorithms is None or layers is None:
            raise UsageError(
                f"the selection trees of MPICH were not found in the library of {library.launcher}",
                code="collectives.algorithm_unknown",
            )
        text = json.dumps(changed_tree(algorithms, rules, library.params), indent=1)
        parameters = [Parameter(FILE, (str(write_file(text, place, stem, ".json")),))]
        if layer_rules(rules):
            text = json.dumps(changed_layers(layers, rules), indent=1)
            path = write_file(text, place, f"{stem}-layers", ".json")
            parameters.append(Parameter(LAYERS_FILE, (str(path),)))
        return tuple(parameters)

    def names(self, library: Library, operation: str) -> dict[str, str]:
        return {name: word for word, name in self._words(library, operation).items()}


def _stem(operation: str) -> str:
    return f"MPIR_CVAR_{operation.upper()}"


def _main(operation: str) -> str:
    return f"{_stem(operation)}_INTRA_ALGORITHM"


def _name(operation: str, word: str) -> str:
    """The name in a tree."""
    kind = "allcomm" if word == "nb" else "intra"
    return f"MPIR_{operation.capitalize()}_{kind}_{word}"


def _shapes(
    library: Library, operation: str, words: Sequence[str], ranks: int
) -> list[tuple[str, tuple[int, ...], list[str]]]:
    """Variables of fan-outs and segments, their levels, and the algorithms that use them."""
    users: dict[str, list[str]] = {}
    for word in words:
        for _, end in PARAMETERS.get(_name(operation, word).removeprefix("MPIR_"), ()):
            users.setdefault(end, []).append(word)
    shapes = []
    for end, names in users.items():
        levels = tuple(k for k in _FANOUTS if k <= ranks) if end.endswith("_KVAL") else ()
        if end == _CHUNK and "pipelined_tree" in names:
            levels = _SEGMENTS
        name = f"{_stem(operation)}_{end}"
        if levels and name in library.params:
            shapes.append((name, levels, names))
    return shapes
