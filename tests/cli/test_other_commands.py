from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import Cli, Outcome, settings_title
from tests.runner.others import shared

__all__ = ["shared"]


def test_apps(cli: Cli) -> None:
    assert "jacobi3d" in cli("apps").out
    assert "tiny" in cli("apps", "jacobi3d").out
    assert cli("apps", "nothing").code == 2
    names = [a["name"] for a in json.loads(cli("apps", "--json", "-").out)]
    assert "jacobi3d" in names


def test_version_and_help(cli: Cli) -> None:
    assert "autotune" in cli("--version").out
    assert "search" in cli("--help").out
    for words in ((), ("search",), ("space",), ("space", "check")):
        assert cli(*words, "-h").out == cli(*words, "--help").out


@pytest.mark.mpi
def test_doctor(cli: Cli, library: object) -> None:
    outcome = cli("doctor")
    assert outcome.code == 0
    assert "start-up" in outcome.out
    found = codes(cli("doctor", "--quick", "--json", "-"))
    assert {"machine.cores", "mpi.library", "mpi.inherited"} <= found


@pytest.mark.mpi
def test_doctor_tells_of_what_single_commands_need(
    cli: Cli, library: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A machine with nothing: no Slurm, no ssh, no nsenter, a Python without mpi4py."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("AUTOTUNE_STORE", "postgresql://me:secret@127.0.0.1:1/x")
    outcome = cli("doctor", "--json", "-")
    found = {f["code"]: f for f in json.loads(outcome.out)["findings"]}
    assert "sbatch" in found["scheduler.slurm"]["words"]
    assert "127.0.0.1" in found["store.postgres"]["words"]
    assert "secret" not in outcome.text
    assert "nsenter" in found["testbed.needs"]["words"]
    assert f"{tools}/python3" in found["python.others"]["words"]
    lacking = ("scheduler.slurm", "store.postgres", "testbed.needs", "remote.ssh", "python.others")
    for code in lacking:
        assert found[code]["state"] == "note"
        assert found[code]["advice"]


def test_what_is_named_and_does_not_exist_is_wrong_usage(cli: Cli, library: object) -> None:
    program = ("-n", "1", "--", sys.executable, "-c", "")
    named = [
        ("--mpi", "/nope"), ("--mpi", "nope"), ("--mpi", "mpich-99"), ("--scheduler", "nope"),
        ("--cluster", "nope"), ("--space", "nope"), ("--strategy", "nope"),
        ("--params-file", "/nope/x.conf"), ("--json", "/nope/x.json"),
    ]  # fmt: skip
    for option, value in named:
        outcome = cli("search", option, value, "--trials", "1", "--store", "r.db", *program)
        assert outcome.code == 2, (option, value, outcome.text)
        assert value.removesuffix("/x.conf").removesuffix("/x.json") in outcome.err
    for words in (("doctor",), ("space", "check", "openmpi"), ("collectives",)):
        assert cli(*words, "--mpi", "/nope").code == 2, words
    assert cli("testbed", "up", "--nodes", "99").code == 2


@pytest.mark.mpi
def test_doctor_lists_inherited_settings(
    cli: Cli, library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_btl_sm_eager_limit", "8192")
    monkeypatch.setenv("OMPI_MCA_mpi_show_mca_params_file", "x" * 60)
    out = cli("doctor", "--quick").out
    assert "OMPI_MCA_btl_sm_eager_limit = 8192" in " ".join(out.split())
    whole = re.compile(r" {5}ok  | {3}note  | {9}")
    assert [line for line in out.splitlines() if not whole.match(line)] == [], "lines hang"


@pytest.mark.mpi
def test_cluster_init(
    cli: Cli, library: object, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The wheel's btl/ofi would idle for a second at every start.
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    assert cli("cluster", "init", "mine").code == 0
    assert (work / "configs" / "clusters" / "mine.toml").exists()
    listed = cli("cluster", "list").out
    assert "configs/clusters/mine.toml" in listed, "where it comes from is in the list"
    own = cli("cluster", "show", "mine").out
    assert "autotune)" not in own, "it is not a shipped one"
    assert any(line.endswith(" openmpi") for line in own.splitlines()), "the name of its space"
    assert "configs/clusters/mine.toml" in own
    assert json.loads(cli("cluster", "show", "mine", "--json", "-").out)["name"] == "mine"
    assert "autotune)" in cli("cluster", "show", "local").out, "it is a shipped one"
    fixed = json.loads(cli("cluster", "show", "testbed", "--json", "-").out)["fixed"]
    down = " ".join(cli("cluster", "show", "testbed").out.split())
    assert f"bind_to: {fixed['bind_to']}" in down
    assert cli("cluster", "show", "nowhere").code == 2
    assert cli("cluster", "init", "mine").code == 2
    assert cli("cluster", "init", "../evil").code == 2


@pytest.mark.mpi
def test_spaces_are_listed_shown_checked_and_discovered(
    cli: Cli, library: object, work: Path
) -> None:
    assert "openmpi-thesis" in cli("space", "list").out
    assert "mpi_yield_when_idle" in cli("space", "show", "openmpi").out
    assert cli("space", "check", "openmpi").code == 0
    assert "btl_self_eager_limit" in cli("space", "discover", "eager_limit").out
    words = ("space", "discover", "eager_limit", "-o", "mine.toml", "--json", "list.json")
    assert cli(*words).code == 0
    assert json.loads((work / "list.json").read_text())
    assert cli("space", "check", "mine.toml").code == 0
    (work / "old.toml").write_text("[parameters.mpi_paffinity_alone]\nlevels = [0, 1]\n")
    refused = cli("space", "check", "old.toml")
    assert refused.code == 2
    assert "bind" in refused.text


@pytest.mark.mpi
def test_noise(cli: Cli, mpi_shell: str, snapshot: SnapshotAssertion) -> None:
    # Each run leaves a sign, and its figure depends on how many there are.
    script = "echo x >> runs; n=$(wc -l < runs); echo seconds 1.0$((n * n * 37 % 89 + 10))"
    outcome = cli(
        "noise", "--no-guard", "--runs", "6", "--ranks", "1", "--metric", "seconds ([0-9.]+)",
        "--store", "r.db", "--json", "n.json", "--", mpi_shell, script,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    data = json.loads(Path("n.json").read_text())
    assert data["runs"] == 6
    gains = [row["gain"] for row in data["resolvable"]]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) >= 3
    shown = cli("show", data["study"], "--store", "r.db").out
    assert f"{gains[0] * 100:.1f} %" in shown
    assert settings_title(shown) == snapshot


@pytest.mark.slow
@pytest.mark.mpi
def test_noise_keeps_to_a_budget(cli: Cli, library: object, work: Path) -> None:
    words = ("noise", "--no-guard", "--store", "r.db", "--metric", "t=([0-9.]+)", "--ranks", "1")
    program = work / "slow.py"
    program.write_text(
        "import time\nfrom mpi4py import MPI\nt = time.time()\ntime.sleep(0.5)\n"
        "print(f't={time.time() - t}')\n"
    )
    few = cli(*words, "--budget", "2s", "--", sys.executable, program)
    assert few.code == 1
    assert "[budget.too_small]" in few.err
    assert "2 s" in few.err
    some = cli(*words, "--budget", "8s", "--json", "n.json", "--", sys.executable, program)
    assert some.code == 0, some.err
    assert 6 <= json.loads((work / "n.json").read_text())["runs"] < 20


def test_doctor_tells_of_a_cache_that_others_control(
    cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code is not kept there, so that every run makes it again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    assert "cache.unusable" not in codes(cli("doctor", "--quick", "--json", "-"))
    shared.chmod(0o777)
    assert "cache.unusable" in codes(cli("doctor", "--quick", "--json", "-"))


def codes(outcome: Outcome) -> set[str]:
    return {one["code"] for one in json.loads(outcome.out)["findings"]}
