"""Completion: what shells offer for commands, options and values."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.space import Setting
from autotune.store import Store
from tests.contract.store_samples import key

HERE = Path(sys.executable).parent
LONGEST_S = 60.0

Ask = Callable[..., list[str]]


def _variables(line: str) -> dict[str, str]:
    """What bash tells the program about a line."""
    return {
        "_AUTOTUNE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


@pytest.fixture
def ask_anew(work: Path) -> Ask:
    """The values that are offered for the last word of a line, by bash's protocol."""

    def offered(line: str, **variables: str) -> list[str]:
        done = subprocess.run(
            # ``python -m`` has the same program name as the installed command.
            [sys.executable, "-m", "autotune"],
            env=os.environ | _variables(line) | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offered


@pytest.fixture
def ask(work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ask:
    """The same, by the same entry without a process of its own."""

    def offered(line: str, **variables: str) -> list[str]:
        with monkeypatch.context() as patch:
            for name, value in (_variables(line) | variables).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main([])
        assert not ended.value.code
        out, err = capfd.readouterr()
        assert err == ""
        return out.split()

    return offered


def test_commands_and_options(ask: Ask) -> None:
    assert ask("autotune se") == ["search"]
    assert {"list", "show", "init", "split"} <= set(ask("autotune cluster "))
    assert "--strategy" in ask("autotune search --st")


def test_a_process_of_its_own_offers_the_same(ask: Ask, ask_anew: Ask) -> None:
    line = "autotune search --space openmpi+open"
    found = ask_anew(line)
    assert "openmpi+openmpi-tcp" in found
    assert found == ask(line)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("autotune search --app jac", "jacobi3d"),
        ("autotune search --app jacobi3d --input ti", "tiny"),
        ("autotune search --strategy ", "ga"),
        ("autotune search --space openmpi+open", "openmpi+openmpi-tcp"),
        ("autotune run --cluster lo", "local"),
        ("autotune apps jac", "jacobi3d"),
        ("autotune cluster show lo", "local"),
        ("autotune space show open", "openmpi"),
        ("autotune dataset describe grid-n", "grid-node"),
        ("autotune explore grid-n", "grid-node"),
        ("autotune schema cluster-l", "cluster-list"),
        ("autotune publish --format open", "openmpi-user"),
    ],
)
def test_values(ask: Ask, line: str, value: str) -> None:
    found = ask(line)
    assert value in found
    assert all(one.startswith(line.rpartition(" ")[2]) for one in found)


def test_studies_are_those_of_the_database(ask: Ask, tmp_path: Path) -> None:
    place = tmp_path / "own.db"
    with Store.open(place) as store:
        study = store.study(key())
        store.add_trial(study.id, {}, Setting({}).key)
    name = study.hash[:8]
    for line in ("autotune show ", f"autotune status {name[:3]}", "autotune worker "):
        assert ask(line, AUTOTUNE_STORE=str(place)) == [name]
    assert ask(f"autotune show --store {place} ") == [name]


def test_nothing_is_offered_and_nothing_made_where_something_is_wrong(
    ask: Ask, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.db"
    assert ask("autotune show ", AUTOTUNE_STORE=str(gone)) == []
    assert not gone.exists()
    damaged = tmp_path / "damaged.db"
    damaged.write_text("no database")
    assert ask("autotune show ", AUTOTUNE_STORE=str(damaged)) == []
    assert ask("autotune search --app no-such-app --input ") == []


def test_names_that_a_shell_would_evaluate_are_not_offered(ask: Ask, work: Path) -> None:
    place = work / "configs" / "apps"
    place.mkdir(parents=True)
    for name in ("own", "own`id`", "own$(id)", "own two", "own'"):
        (place / f"{name}.toml").write_text('name = "own"')
    assert ask("autotune search --app own") == ["own"]


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PATH": f"{HERE}:{os.environ['PATH']}", "HOME": str(folder), "PS1": "$ "}


@pytest.mark.parametrize(
    ("shell", "setup"),
    [
        (["bash", "--norc", "--noprofile", "-i"], ""),
        (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; "),
    ],
    ids=["bash", "zsh"],
)
def test_the_tab_key_completes(shell: list[str], setup: str, tmp_path: Path) -> None:
    """A shell on a terminal, and a key that is pressed."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe(shell[0], shell, _environment(tmp_path))
    try:
        os.write(terminal, f"{setup}source <(autotune --show-completion); echo rea''dy\n".encode())
        _read_until(terminal, "ready")
        os.write(terminal, b"autotune search --app jac\t")
        _read_until(terminal, "jacobi3d")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, words: str) -> None:
    seen = b""
    end = time.monotonic() + LONGEST_S
    while words.encode() not in seen:
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"{words!r} did not come: {seen!r}"
        seen += os.read(terminal, 4096)


def test_fish_completes(tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    line = "autotune --show-completion | source; complete -C 'autotune search --app jac'"
    done = subprocess.run(
        [fish, "--no-config", "-c", line],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(tmp_path),
    )
    assert done.stdout.split()[0] == "jacobi3d"
