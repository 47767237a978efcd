"""The commands that are printed after a search: they fit its status, and they work when copied."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.space import Setting
from autotune.study.search_result import NOTHING_LEFT, Result
from autotune.study.study_status import Status
from autotune.terminal.command_line import on_this_target, option_words, own_name, remember_command
from autotune.terminal.follow_up import follow_up
from tests.cli.conftest import Cli, Outcome

PROGRAM = """
import os, random
from mpi4py import MPI
tuned = "OMPI_MCA_btl_sm_eager_limit" in os.environ
if MPI.COMM_WORLD.rank == 0:
    print(f"time {(0.16 if tuned else 0.2) * random.lognormvariate(0, 0.01):.9f}")
"""
SPACE = """
description = "one parameter"

[parameters.btl_sm_eager_limit]
levels = [8192]
help = "eager limit"
"""
LINE = ["search", "--metric=time (.*)", "-n", "2", "--budget", "60s", "--clean-env"]
LINE += ["--", "./p", "-n"]


@pytest.fixture
def command() -> Iterator[None]:
    remember_command(LINE)
    yield
    remember_command(None)


def result(status: Status, ended_by: str = "") -> Result:
    return Result(
        status=status,
        recommended=Setting({"a": 1}) if status == "recommended" else Setting(),
        study="0123456789ab",
        mpi={"name": "openmpi", "version": "5.0.11"},
        machine="m",
        cluster="local",
        app="p",
        ranks=2,
        strategy="random",
        seed=0,
        ended_by=ended_by,
        trials=100,
        budget_s=60,
        mpirun="mpirun -n 2 --mca a 1 ./p",
    )


def commands(outcome: Outcome) -> list[str]:
    """The printed commands, as a user copies them."""
    rows = outcome.out.splitlines()
    rows = rows[rows.index("What next:") + 1 :]
    return [row.strip() for row in rows if row.startswith("    ")]


def obey(cli: Cli, command: str) -> Outcome:
    """Run a copied command: in this process if it is autotune's, else in a shell."""
    words = shlex.split(command)
    if words[0] == "autotune":
        return cli(*words[1:])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_options_of_the_target_are_handed_on(command: None) -> None:
    assert option_words() == ["--metric=time (.*)", "-n", "2", "--clean-env"]
    line = "autotune noise '--metric=time (.*)' -n 2 --clean-env -- ./p -n"
    assert on_this_target("noise") == line


def test_autotune_is_called_as_the_user_called_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "autotune"
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(place)])
    monkeypatch.setenv("PATH", "/nonexistent")
    assert own_name() == [str(place)]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_name() == ["autotune"]
    monkeypatch.setattr(sys, "argv", ["/x/autotune/__main__.py"])
    assert own_name() == [sys.executable, "-m", "autotune"]


def test_what_comes_next_depends_on_the_status(command: None) -> None:
    def after(found: Result, publish: list[str] | None = None) -> dict[str, str]:
        return {row.what: row.command for row in follow_up(found, publish)}

    proven = after(result("recommended"), [])
    assert proven["Use it"] == "mpirun -n 2 --mca a 1 ./p"
    assert proven["Make it the default of this user"] == (
        "autotune publish --from study:0123456789ab"  # data
    )
    other = after(result("recommended"))
    again = "autotune compare default study:0123456789ab"
    assert again in other["Compare it again"]
    assert "--budget 120s" in after(result("keep_default"))["Search further"]
    none_left = after(result("keep_default", NOTHING_LEFT))
    assert none_left["Choose other parameters (--space)"] == "autotune space list"  # data
    open_one = result("inconclusive")
    open_one.next_step = {"words": "more runs", "options": {"--budget": "90s"}}
    decide = next(iter(after(open_one).values()))
    assert "--budget 90s" in decide
    assert "--budget 60s" not in decide
    for status in ("recommended", "keep_default", "inconclusive", "too_noisy", "unguarded"):
        assert len(follow_up(result(status))) == 3


@pytest.mark.slow
@pytest.mark.mpi
def test_the_commands_after_a_proof_work_when_copied(
    cli: Cli, open_mpi: object, work: Path, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    (work / "p.py").write_text(PROGRAM)
    (work / "one.toml").write_text(SPACE)
    found = cli(
        *("search", "--space", "one.toml", "--strategy", "random", "--trials", "1"),
        *("--metric", "time ([0-9.]+)", "--ranks", "2", "--store", "r.db", "--json", "r.json"),
        *("--", sys.executable, "p.py"),
    )
    assert found.code == 0, found.err
    stored = json.loads((work / "r.json").read_text())
    assert stored["status"] == "recommended", found.out
    use, believe, spread = commands(found)
    assert f"--tune {stored['params_file']}" in use
    ran = obey(cli, use)
    assert ran.code == 0, ran.text
    assert 0.12 < float(ran.out.split()[1]) < 0.18, "the line does not use the setting"
    assert obey(cli, believe).code == 0
    published = obey(cli, spread)
    assert published.code == 0, published.text
    assert "btl_sm_eager_limit" in (work / ".openmpi" / "mca-params.conf").read_text()


READER = """
import random
from mpi4py import MPI
block = open("in.dat").read().split()[1]
if MPI.COMM_WORLD.rank == 0:
    print(f"time {(0.16 if block == '32' else 0.2) * random.lognormvariate(0, 0.01):.9f} right")
"""
READER_APP = """
name = "reader"
command = ["{program}", "{place}"]
metric = 'time ([0-9.]+)'
verify = "right"
default_ranks = 2
tunable = ["reader"]
[input_files]
"in.dat" = "block {{nb}}"
[placeholders]
nb = "result"
[inputs.default]
values = { nb = "80" }
"""
READER_SPACE = """
requires = "reader"
[parameters.nb]
target = "file"
levels = [32, 80]
default = 80
help = "block"
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_setting_of_input_files_can_be_used_as_printed(
    cli: Cli, open_mpi: object, work: Path, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    (work / "reader.py").write_text(READER)
    app = READER_APP.replace("{place}", str(work / "reader.py"))
    (work / "reader.toml").write_text(app.replace("{program}", sys.executable))
    (work / "blocks.toml").write_text(READER_SPACE)
    words = ["search", "--app", "reader.toml", "--space", "blocks.toml", "--store", "r.db"]
    words += ["--strategy", "random", "--trials", "1"]
    found = cli(*words, "--json", "r.json")
    assert found.code == 0, found.err
    stored = json.loads((work / "r.json").read_text())
    assert stored["recommended"]["setting"] == {"nb": 32}, found.out
    assert (work / stored["input_folder"] / "in.dat").read_text() == "block 32"
    use, _, again = commands(found)
    assert use == stored["start_line"]
    compared = obey(cli, f"{again} --pairs 6 --json c.json")
    assert compared.code == 0, compared.text
    assert json.loads((work / "c.json").read_text())["outcome"] == "better"
    ran = obey(cli, use)
    assert ran.code == 0, ran.text
    assert 0.12 < float(ran.out.split()[1]) < 0.18, "the line does not use the setting"
    # The stored answer has the line as long as the folder is there.
    assert commands(cli(*words))[0] == use
    (work / stored["input_folder"]).rename(work / "away")
    assert "cd " not in commands(cli(*words))[0]


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("guard", [(), ("--no-guard",)])
@pytest.mark.usefixtures("steady", "quiet")
def test_the_commands_without_a_proof_work_when_copied(
    cli: Cli, library: object, guard: tuple[str, ...]
) -> None:
    found = cli(
        *("search", "--app", "steady", "--input", "tiny", *guard, "--store", "r.db"),
        *("--strategy", "random", "--trials", "1"),
    )
    assert found.code == 0, found.err
    told = commands(found)
    assert len(told) == 3
    for command in told:
        done = obey(cli, command)
        assert done.code == 0, (command, done.text)
