"""The MPI libraries of a study: one program under several.

The study is that of the first library. In the run history a setting of another library also names
that library, so the same values may be run under several, and no other study takes such a run for
one of the first library. Everything else is as in a study of one library: blocks, looks,
continuation. A comparison has one other library, that of B; a search may have several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from autotune.measurement.study_key import study_key
from autotune.space import Setting, Space
from autotune.space.library_choice import MPI
from autotune.targets.target import Target
from runner.files.paths import real_path
from runner.launch import Runner


@dataclass(frozen=True)
class Side:
    """What launches the settings of one library: its runner, target and space."""

    runner: Runner
    target: Target
    space: Space


@dataclass(frozen=True)
class OtherLibrary:
    """The same program under another library, or its build for it.

    ``space`` has the parameters of the settings under it.
    """

    target: Target
    space: Space

    @property
    def name(self) -> str:
        """The library as the run history names it."""
        return library_name(self.target.library.family, self.target.library.version)

    def under(self, setting: Setting) -> Setting:
        """``setting`` as the run history names it: with this library."""
        return setting.with_values({MPI: self.name})

    def cheap(self) -> OtherLibrary:
        """The same library with the program in its cheap form (:meth:`Target.cheap`)."""
        return replace(self, target=self.target.cheap())

    def identity(self, first: Target, strategy: str, guard: bool) -> dict[str, Any]:
        """The part of the study's identity that is this library's, in JSON types.

        The directories are part of it: two builds of one version are two libraries here.
        """
        target = self.target
        key = study_key(target, self.space, strategy, {}, 0, guard)
        return {
            "second": key.hash,
            "libraries": [str(real_path(t.library.bin)) for t in (first, target)],
        }


def library_name(family: str, version: str) -> str:
    """Family and version in one word: mpich-5.0.2."""
    return f"{family}-{version}"


@contextmanager
def sides_of(others: Sequence[OtherLibrary], guard: bool) -> Iterator[dict[str, Side]]:
    """The sides of other libraries by their names, while their runners are open."""
    with ExitStack() as stack:
        yield {
            other.name: Side(
                stack.enter_context(other.target.runner(guard)), other.target, other.space
            )
            for other in others
        }
