"""Real servers for tests, started where they are installed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url

from runner.testbed.model import Testbed
from runner.testbed.processes import TOKEN
from tests.mpi_environments import CACHE

POSTGRES_VARIABLE = "AUTOTUNE_TEST_POSTGRES"
_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def as_user(user: str) -> list[str]:
    """What to put before a command that root runs as somebody else."""
    return [_found("runuser") or "runuser", "-u", user, "--"]


def _found(tool: str) -> str | None:
    return shutil.which(tool) or next(
        (str(p) for p in [Path("/usr/sbin") / tool] if p.exists()), None
    )


def postgres_tool(name: str) -> str | None:
    """``initdb`` and the like: on the path, or where Debian keeps them."""
    return next(
        (str(place / name) for place in _PLACES if (place / name).exists()), shutil.which(name)
    )


@contextlib.contextmanager
def postgres(durable: bool = False) -> Iterator[str]:
    """The URL of a server of one's own, on a socket in a temporary folder.

    ``durable``: each commit waits for the disk, as on a real server. PostgreSQL does not run as
    root: there it is started as ``postgres`` or ``nobody``.
    """
    initdb = postgres_tool("initdb")
    assert initdb
    place = Path(tempfile.mkdtemp(prefix="autotune-pg-"))
    if os.geteuid() == 0:
        shutil.chown(place, _postgres_user())
    url = f"postgresql://autotune@/postgres?host={place}&port=5432"
    try:
        words = [initdb, "-A", "trust", "-U", "autotune", "--no-sync"]
        _initialize([*_as_postgres(), *words], place / "data")
        with (place / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"unix_socket_directories = '{place}'\nport = 5432\nlisten_addresses = ''\n"
                f"fsync = {'on' if durable else 'off'}\nmax_connections = 200\n"
            )
        start_postgres(url)
        yield url
    finally:
        _control(url, "-m", "immediate", "stop", check=False)
        shutil.rmtree(place, ignore_errors=True)


def postgres_folder(url: str) -> Path:
    """The folder of a server that :func:`postgres` started."""
    return Path(url.partition("host=")[2].partition("&")[0])


def postmaster(url: str) -> int:
    """The number of its first process, which starts all others."""
    return int((postgres_folder(url) / "data" / "postmaster.pid").read_text().split()[0])


def server_processes(url: str) -> list[int]:
    """The processes that it has started, those of its connections among them."""
    leader, children = postmaster(url), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == leader:
                    children.append(int(entry.name))
    return children


def kill_postgres(url: str) -> None:
    """Kill the first process of a server, and wait until the others have noticed."""
    children = server_processes(url)
    os.kill(postmaster(url), signal.SIGKILL)
    _until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "the end")


def start_postgres(url: str) -> None:
    """Start such a server, also after it was killed."""
    _control(url, "-w", "-l", f"{postgres_folder(url)}/log", "start")


def _control(url: str, *words: str, check: bool = True) -> None:
    control = postgres_tool("pg_ctl")
    assert control
    line = [*_as_postgres(), control, "-D", f"{postgres_folder(url)}/data", *words]
    if check:
        _run(line)
    else:
        subprocess.run(line, capture_output=True, check=False)


def _postgres_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as_postgres() -> list[str]:
    return as_user(_postgres_user()) if os.geteuid() == 0 else []


def _initialize(command: Sequence[str], data: Path) -> None:
    """Make a database cluster at ``data``: a copy of the one that an equal command once made."""
    program = Path(command[command.index("-A") - 1]).stat()
    locale = sorted((n, v) for n, v in os.environ.items() if n.startswith(("LANG", "LC_")))
    inputs = f"{command} {locale} {program.st_size} {program.st_mtime_ns}"
    kept = CACHE / "postgres" / hashlib.sha256(inputs.encode()).hexdigest()[:32]
    if kept.exists():
        _run(["cp", "-a", str(kept), str(data)])
        return
    _run([*command, "-D", str(data)])
    kept.parent.mkdir(parents=True, exist_ok=True)
    copy = Path(tempfile.mkdtemp(dir=kept.parent)) / "data"
    _run(["cp", "-a", str(data), str(copy)])
    with contextlib.suppress(OSError):  # Another process was faster.
        copy.rename(kept)
    shutil.rmtree(copy.parent)


@contextlib.contextmanager
def new_schema(server: str) -> Iterator[str]:
    """The URL of an empty schema of a server, for a while."""
    import psycopg

    url = make_url(server)
    schema = f"autotune_test_{uuid.uuid4().hex}"
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            in_schema = url.update_query_dict({"options": f"-csearch_path={schema}"})
            yield in_schema.render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """The server that the environment names, else one of one's own."""
    if POSTGRES_VARIABLE in os.environ:
        yield os.environ[POSTGRES_VARIABLE]
        return
    with postgres() as url:
        yield url


def missing_for_postgres() -> str | None:
    """Why there is no PostgreSQL to test with; None where there is."""
    if POSTGRES_VARIABLE in os.environ or postgres_tool("initdb") is not None:
        return None
    return f"PostgreSQL is not installed, and {POSTGRES_VARIABLE} names no server"


def _run(words: list[str]) -> None:
    # pg_ctl hands its output on to the server: a pipe would never end.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
        )
        said.seek(0)
        assert done.returncode == 0, f"{words}: {said.read()}"


SLURM_TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "srun")


def missing_for_slurm() -> str | None:
    """Why no Slurm can be started here; None where it can."""
    missing = [tool for tool in SLURM_TOOLS if not _found(tool)]
    if missing:
        return f"{', '.join(missing)} not installed"
    return None if os.geteuid() == 0 else "Slurm's daemons need root here"


@dataclass(frozen=True)
class SlurmNode:
    """A node of a Slurm; ``enter`` is put before what shall run there."""

    name: str
    address: str = "127.0.0.1"
    cpus: int = os.cpu_count() or 1
    enter: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The node in Slurm's configuration."""
        return f"NodeName={self.name} NodeAddr={self.address} CPUs={self.cpus} State=UNKNOWN"


@contextlib.contextmanager
def slurm() -> Iterator[dict[str, str]]:
    """The environment in which Slurm's commands find a controller and one node on this machine."""
    with _slurm([SlurmNode(_host())], "127.0.0.1") as environment:
        yield environment


@contextlib.contextmanager
def slurm_on_testbed(testbed: Testbed) -> Iterator[dict[str, str]]:
    """The same with the nodes of a testbed: the controller is on the host, as on a login node."""
    inside = (str(_found("nsenter")), "--net", "--uts", "--mount", "--ipc", "--target")
    nodes = [
        SlurmNode(
            node.name, node.address, len(node.cpus),
            (
                # The token: what Slurm starts ends with the testbed.
                *("env", f"{TOKEN}={testbed.token}"),
                *("taskset", "-c", ",".join(map(str, node.cpus))),
                *inside, str(node.process.pid), "--",
            ),
        )
        for node in testbed.nodes
    ]  # fmt: skip
    # Each slurmd sees the whole machine, and would bind the first rank of every node to CPU 0.
    with _slurm(nodes, _host_address(testbed), "TaskPluginParam=None") as environment:
        yield environment


def _free_ports(count: int) -> list[int]:
    """Numbers that nobody listens on: another Slurm of these tests may be up."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in opened:
            one.bind(("", 0))
        return [int(one.getsockname()[1]) for one in opened]


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _host_address(testbed: Testbed) -> str:
    """The host's own address in the testbed's network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((testbed.nodes[0].address, 9))  # sends nothing, but chooses the way
        return str(asked.getsockname()[0])


@contextlib.contextmanager
def _slurm(nodes: Sequence[SlurmNode], control: str, *lines: str) -> Iterator[dict[str, str]]:
    place = Path(tempfile.mkdtemp(prefix="autotune-slurm-"))
    place.chmod(0o755)
    conf = place / "slurm.conf"
    ports = _free_ports(2)
    names = ",".join(node.name for node in nodes)
    conf.write_text(
        "\n".join(
            [
                "ClusterName=test", f"SlurmctldHost={_host()}({control})", "SlurmUser=root",
                "AuthType=auth/munge", f"AuthInfo=socket={place}/munge.socket",
                "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/affinity",
                "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core",
                "SwitchType=switch/none", "MpiDefault=none", "ReturnToService=2",
                # A testbed's node has fewer CPUs than the machine that it is on.
                "SlurmdParameters=config_overrides",
                f"StateSaveLocation={place}/state", f"SlurmdSpoolDir={place}/spool-%n",
                f"SlurmctldPidFile={place}/slurmctld.pid", f"SlurmdPidFile={place}/slurmd-%n.pid",
                f"SlurmctldLogFile={place}/slurmctld.log", f"SlurmdLogFile={place}/slurmd-%n.log",
                # The files of PMIx; nodes of a testbed have one /tmp.
                f"TmpFS={place}/tmp-%n",
                f"SlurmctldPort={ports[0]}", f"SlurmdPort={ports[1]}",
                "SchedulerParameters=bf_interval=1",
                "InactiveLimit=0", "KillWait=5", "MinJobAge=300",
                *(node.line for node in nodes),
                *lines,
                f"PartitionName=all Nodes={names} Default=YES MaxTime=60 State=UP OverSubscribe=NO",
            ]
        )
        + "\n"
    )  # fmt: skip
    # Its search for a version ends slurmd where nothing is mounted, as in a testbed's node.
    (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    (place / "state").mkdir()
    for node in nodes:
        (place / f"tmp-{node.name}").mkdir()
    key = place / "munge.key"
    key.write_bytes(os.urandom(1024))
    environment = os.environ | {"SLURM_CONF": str(conf)}
    munge = place / "m"
    munge.mkdir()
    for path in (key, munge):
        shutil.chown(path, "munge")
    key.chmod(0o600)
    shutil.chown(place, "munge")
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> None:
        log = (place / f"{name}.out").open("wb")
        started.append(
            subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        )

    try:
        start(
            "munged",
            *as_user("munge"),
            *(str(_found("munged")), "--foreground", "--force"),
            *("--key-file", str(key), "--socket", f"{place}/munge.socket"),
            *("--pid-file", f"{munge}/pid", "--log-file", f"{munge}/log"),
            *("--seed-file", f"{munge}/seed"),
        )
        _until(lambda: (place / "munge.socket").exists(), "munged")
        shutil.chown(place, "root")
        start("slurmctld", str(_found("slurmctld")), "-D", "-f", str(conf))
        for node in nodes:
            daemon = (str(_found("slurmd")), "-D", "-f", str(conf), "-N", node.name)
            start(f"slurmd-{node.name}", *node.enter, *daemon)
        _until(lambda: _idle(environment) == len(nodes), f"Slurm's nodes ({place})")
        yield environment
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(place, ignore_errors=True)


def _idle(environment: dict[str, str]) -> int:
    words = ["sinfo", "--noheader", "--Node", "--format", "%T"]
    said = subprocess.run(words, env=environment, capture_output=True, check=False).stdout
    return said.split().count(b"idle")


def _until(done: object, what: str) -> None:
    end = time.monotonic() + 120
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end, f"{what} did not start"
        time.sleep(0.1)
