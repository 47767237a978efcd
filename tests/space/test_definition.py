"""For which libraries a piece of a definition is."""

from __future__ import annotations

import pytest

from autotune.errors import UsageError
from autotune.space.definition import matches
from runner.mpi.library import Library


def _library(version: str, family: str = "openmpi") -> Library:
    return Library(family, version, "", "")


@pytest.mark.parametrize(
    ("spec", "version", "expected"),
    [
        ("openmpi", "4.1.8", True),
        ("mpich", "4.1.8", False),
        ("openmpi<5", "4.1.8", True),
        ("openmpi<5", "5.0.11", False),
        ("openmpi>=5", "5.0.11", True),
        ("openmpi>=5", "5", True),
        ("openmpi>=5.0.7", "5.0.11", True),
        ("openmpi>=5.0.7", "5.0.6", False),
        ("openmpi==4.1", "4.1.8", True),
        ("openmpi<=4.1", "4.1.8", True),
        ("openmpi!=4.1", "4.1.8", False),
        ("openmpi>4.1", "4.1.8", False),
        ("openmpi>=4.1,<5", "4.1.8", True),
        ("openmpi >= 4.1, < 5", "5.0.0", False),
        ("openmpi>=5", "5.0.0rc1", True),
        ("openmpi>=5.0.1", "5.0.0rc1", False),
    ],
)
def test_matches(spec: str, version: str, expected: bool) -> None:
    assert matches(spec, _library(version)) is expected


@pytest.mark.parametrize(
    "spec", ["", "5", "openmpi5", "openmpi=5", "openmpi<five", "Open MPI", "<5"]
)
def test_what_cannot_be_read_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="does not name an MPI library"):
        matches(spec, _library("5.0.11"))
