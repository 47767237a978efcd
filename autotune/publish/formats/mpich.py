"""Files for MPICH: a script of variables, and its selection trees as JSON.

MPICH stops in MPI_Init on a value that it does not understand, but ignores an unknown variable.
:mod:`autotune.dialects.mpich_trees` makes the trees; rules for bcast and reductions need both.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from autotune.collective_rules import Rule
from autotune.dialects.base import LIBRARY_DECIDES
from autotune.dialects.mpich_trees import (
    FILE,
    LAYERS_FILE,
    changed_layers,
    changed_tree,
    layer_rules,
)
from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.publish.formats.base import Canary, Loading, without_foreign
from autotune.publish.formats.rules import RulesV1
from autotune.publish.formats.scripts import Sh
from runner.mpi.library import Library
from runner.mpi.mpich import FAMILY, Mpich
from runner.mpi.mpich_tree import Tree, builtin_layers, builtin_tree

_ALGORITHM = re.compile(rf"MPI(R|DI)_[A-Za-z0-9_]{{1,100}}|{LIBRARY_DECIDES}")
_COLLECTIVE = re.compile(r"[a-z_]{1,40}")


class MpichEnv(Sh):
    """MPICH and its derivatives."""

    name = "mpich-env"
    summary = "environment script with MPIR_CVAR_ variables of MPICH"
    suffix = ".mpich.sh"
    family = FAMILY
    usual = 2
    loads_rules = True

    def part(self, content: Content, library: Library) -> Content:
        """MPICH's variables, those of UCX and libfabric, and the placement."""
        return without_foreign(super().part(content, library), Mpich.prefixes)


class MpichTree(RulesV1):
    """A selection tree of MPICH.  MPICH aborts in MPI_Init on an error in it."""

    family = FAMILY
    comment = None
    file: ClassVar[str]
    """The variable that names the tree."""
    probe: ClassVar[tuple[str, ...]] = ()
    """Options of a probe program whose collectives the tree certainly serves."""

    @abstractmethod
    def builtin(self, library: Library) -> Tree | None:
        """The library's own tree; None if it is not found."""

    @abstractmethod
    def tree(self, before: Tree, rules: tuple[Rule, ...], library: Library) -> Tree:
        """``before`` with the branches of the collectives in ``rules`` replaced."""

    @abstractmethod
    def fatal_rules(self, rules: tuple[Rule, ...], name: str, library: Library) -> Content:
        """``rules`` in which each call of the collective ``name`` aborts."""

    def obstacle(self, library: Library) -> str | None:
        if self.family != library.family:
            return f"it is for {self.family}, but this library is {library.family}"
        return self.harmful(library)

    def harmful(self, library: Library) -> str | None:
        if self.builtin(library) is not None:
            return None
        return (
            "the selection tree of MPICH was not found; without the rest of the tree the "
            "file aborts every program that calls another collective"
        )

    def part(self, content: Content, library: Library) -> Content:
        own_collectives = {r.collective for r in content.rules if r.algorithm.startswith("MPIR_")}
        return Content(rules=tuple(r for r in content.rules if r.collective in own_collectives))

    def body(self, content: Content, library: Library) -> str:
        for rule in content.rules:
            if not (
                _ALGORITHM.fullmatch(rule.algorithm) and _COLLECTIVE.fullmatch(rule.collective)
            ):
                raise UsageError(
                    f"the rule for {rule.collective} names the algorithm {rule.algorithm!r}; "
                    "MPICH's are called MPIR_... (letters, digits, _)",
                    code="collectives.algorithm_unknown",
                )
        tree = self.tree(self.builtin(library) or {}, content.rules, library)
        return json.dumps(tree, indent=1) + "\n"

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        """For each collective a tree with which its calls abort."""
        trees = []
        for name in dict.fromkeys(rule.collective for rule in content.rules):
            names = frozenset({("rules", name)})
            trees.append(
                Canary(
                    self.fatal_rules(content.rules, name, library),
                    names,
                    name,
                    3,
                    options=self.probe,
                )
            )
        return trees

    def live(self, path: Path, library: Library) -> Loading:
        return Loading({self.file: str(path.absolute())})

    def expected_parameters(self, content: Content, library: Library) -> dict[str, str]:
        return {}  # The canaries show that the library reads the file.

    def companions(self, content: Content, library: Library) -> tuple[str, ...]:
        both = layer_rules(self.part(content, library).rules)
        return (MpichJson.name, MpichLayersJson.name) if both else ()

    def naming(self, path: str) -> dict[str, str]:
        return {self.file: path}


class MpichJson(MpichTree):
    """The algorithms of the general layer."""

    name = "mpich-json"
    summary = f"algorithms of MPICH's collectives ({FILE})"
    suffix = ".mpich.json"
    file = FILE
    # Shared memory may serve a program of another level.
    probe = ("--thread-level", "multiple")

    def builtin(self, library: Library) -> Tree | None:
        return builtin_tree(library)

    def tree(self, before: Tree, rules: tuple[Rule, ...], library: Library) -> Tree:
        return changed_tree(before, rules, library.params)

    def fatal_rules(self, rules: tuple[Rule, ...], name: str, library: Library) -> Content:
        """An algorithm of another collective."""
        other = "MPIR_Bcast_intra_binomial"
        if name == "bcast":
            other = "MPIR_Allreduce_intra_recursive_doubling"
        other_rules = tuple(r for r in rules if r.collective != name)
        return Content(rules=(*other_rules, Rule(name, 1, 0, other)))


class MpichLayersJson(MpichTree):
    """The layer that serves a collective: shared memory, or the algorithms of the general layer.

    Without it, the tree of algorithms does nothing for bcast, reduce and allreduce in
    single-threaded programs within a node.
    """

    name = "mpich-layers-json"
    summary = f"layers of MPICH's collectives ({LAYERS_FILE})"
    suffix = ".mpich-layers.json"
    file = LAYERS_FILE

    def builtin(self, library: Library) -> Tree | None:
        return builtin_layers(library)

    def part(self, content: Content, library: Library) -> Content:
        return Content(rules=layer_rules(super().part(content, library).rules))

    def tree(self, before: Tree, rules: tuple[Rule, ...], library: Library) -> Tree:
        return changed_layers(before, rules)

    def fatal_rules(self, rules: tuple[Rule, ...], name: str, library: Library) -> Content:
        """A composition of another collective."""
        other = "MPIDI_Bcast_intra_composition_alpha"
        if name == "bcast":
            other = "MPIDI_Allreduce_intra_composition_alpha"
        other_rules = tuple(r for r in rules if r.collective != name)
        return Content(rules=(*other_rules, Rule(name, 1, 0, other)))
