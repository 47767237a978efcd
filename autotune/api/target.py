"""Looks up a target on this machine, with autotune's own published files out of force."""

from __future__ import annotations

import os
import sys

from autotune.targets.request import Say, TargetRequest
from autotune.targets.target import Surroundings, Target
from runner.mpi.library import Library


def to_stderr(words: str) -> None:
    """One line on standard error."""
    print(words, file=sys.stderr, flush=True)


def silent_say(words: str) -> None:
    """Say nothing: for users who want the result only."""


def find_target(request: TargetRequest, say: Say = to_stderr) -> Target:
    """Look up the target of a request; raises UsageError for everything that is wrong with it.

    Files that autotune published are out of force wherever a default is measured, so variables that
    name them are removed from this process's environment.
    """
    return request.resolve(lambda library: _apart(library, say), say)


def _apart(library: Library, say: Say) -> Surroundings:
    from autotune.publish.published_files import published

    if not published():
        return Surroundings()
    # The import of the formats takes a while, and most users have published nothing.
    from autotune.publish.neutral import neutral

    found = neutral(library, os.environ)
    for name in found.unset:
        del os.environ[name]
    if found:
        listed = ", ".join(str(path) for path in found.files)
        say(f"files published by autotune are not in force while measuring: {listed}")
    return found.surroundings
