"""Compiled regions: a region's plain function becomes machine code that needs no Python.

:func:`compiled_graph` checks the compiled regions of a graph. :meth:`CompiledGraph.bind` packs a
rank's state into words (a :class:`Block`) and loads or compiles the code for states of its type.
The scheduler then calls ``entry(address of the words, iteration)`` for each run of a region. numba
is imported only if there is no stored code yet. README.md describes what a compiled region may
contain.
"""

from __future__ import annotations

from runner.runtimes.mate.compiled.block import Block
from runner.runtimes.mate.compiled.build import CompiledGraph, compiled_graph

__all__ = ["Block", "CompiledGraph", "compiled_graph"]
