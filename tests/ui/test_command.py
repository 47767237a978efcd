"""``autotune ui`` as a user meets it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.ui.server import Address


def test_the_command_line_does_not_import_the_framework() -> None:
    words = "import sys, autotune.cli.commands, autotune.cli.ui; print('starlette' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_its_packages_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: Path
) -> None:
    monkeypatch.setattr("autotune.cli.ui.find_spec", lambda name: None)
    assert main(["ui", "--store", str(database)]) == 2
    said = capsys.readouterr().err
    assert "[install.extra]" in said
    assert '"mpi-autotune[ui]"' in said
    assert importlib.util.find_spec("starlette") is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_another_host_needs_consent(
    capsys: pytest.CaptureFixture[str], database: Path, host: str
) -> None:
    assert main(["ui", "--host", host, "--store", str(database)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "[ui.host]" in said
    assert "--remote" in said


@pytest.mark.parametrize(
    ("options", "host"),
    [
        ([], "127.0.0.1"),
        (["--remote"], "0.0.0.0"),
        (["--remote", "--host", "127.0.0.1"], "127.0.0.1"),
    ],
)
def test_remote_listens_where_others_reach_it(
    monkeypatch: pytest.MonkeyPatch, database: Path, options: list[str], host: str
) -> None:
    listening: list[Address] = []
    monkeypatch.setattr(
        "autotune.ui.server.serve", lambda store, address, ready: listening.append(address)
    )
    assert main(["ui", "--port", "0", *options, "--store", str(database)]) == 0
    (address,) = listening
    assert address.listening.getsockname()[0] == host
    address.listening.close()
