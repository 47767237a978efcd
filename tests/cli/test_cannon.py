"""Cannon on MATE as it is run with the tuner: the command of docs/reference/spaces.md."""

from __future__ import annotations

import json

import pytest

from runner.mpi.library import Library
from tests.cli.conftest import Cli


@pytest.mark.mpi
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param("variant=mate,side=4", marks=pytest.mark.slow),
        pytest.param("variant=mate,side=2,workers=2", marks=pytest.mark.slow),
        "variant=mate,side=4,split=2",
    ],
)
def test_a_setting_of_the_mate_space_is_verified(cli: Cli, library: Library, setting: str) -> None:
    words = ["run", "--app", "cannon", "--input", "tiny", "--space", "mate-cannon", "--ranks", "2"]
    done = cli(*words, "--setting", setting, "--no-guard", "--json", "-")
    assert done.code == 0, done.err
    found = json.loads(done.out)["run"]
    assert found["verified"] is True
    assert '"variant": "mate"' in found["stdout_tail"]
