"""A launcher below a rank: a program that starts ``mpirun`` itself, once for each rank.

Programs that start more processes by MPI (``MPI_Comm_spawn``, ``mpi4py.futures``) have none: the
existing launcher starts them. A singleton rank may start its library's daemons (``orted``,
``prte``), which do not count as launchers here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from runner.process import read_proc
from runner.supervise import process_tree

LAUNCHERS = frozenset(
    {
        *("mpirun", "mpiexec", "orterun", "orterun_wrapper", "prterun", "srun", "aprun", "jsrun"),
        *("mpiexec.hydra", "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich"),
        *("hydra_pmi_proxy", "hydra_bstrap_proxy"),
    }
)
"""Names of the programs that start ranks, under which they may be installed."""
_COMM_BYTES = 15
_SHORT = frozenset(name[:_COMM_BYTES] for name in LAUNCHERS)
_FIRST_LOOK_S = 0.06
_MOST_WORDS = 64


class InnerLauncherWatch:
    """Looks for a launcher below a rank, less often as time goes on."""

    def __init__(self, variables: Sequence[str], env: dict[str, str]) -> None:
        # A variable that the launcher itself inherits proves nothing about its children.
        self._variables = [name.encode() for name in variables if name not in env]
        self.next_s: float | None = _FIRST_LOOK_S if self._variables else None
        """Seconds after the start at which to look again; None: never."""

    def look(self, root: int, launcher: int) -> tuple[str, ...]:
        """The command line of a launcher that a rank started; empty if there is none.

        ``root`` is the process above all of the run, ``launcher`` the run's own launcher.
        """
        for pid in process_tree.descendants(root):
            if pid != launcher and process_tree.name_of(pid) in _SHORT and self._in_rank(pid, root):
                words = command_of_launcher(read_proc(f"/proc/{pid}/cmdline"))
                if words:
                    self.next_s = None
                    return words
        return ()

    def postpone(self) -> None:
        """Set the time of the next look: a launcher is noticed if it lives a quarter as long as the
        run did before it."""
        if self.next_s is not None:
            self.next_s += max(_FIRST_LOOK_S, self.next_s / 4)

    def _in_rank(self, pid: int, root: int) -> bool:
        """True if the process or an ancestor below ``root`` has a rank variable."""
        at: int | None = pid
        while at is not None and at > 1 and at != root:
            env = process_tree.environ(at)
            if any(env.get(name, b"").isdigit() for name in self._variables):
                return True
            at = process_tree.parent_of(at)
        return False


def command_of_launcher(line: bytes) -> tuple[str, ...]:
    """The arguments of a launcher's command line as typed; empty for other programs.

    A launcher script has its interpreter before it. ``mpirun`` of Open MPI 5 becomes ``prterun``. A
    launcher's own helpers (Hydra's proxies) are not typed by a user: only their name is returned.
    """
    words = line.decode(errors="replace").rstrip("\0").split("\0")[:_MOST_WORDS]
    names = [PurePath(word).name for word in words]
    at = next((n for n, name in enumerate(names) if name in LAUNCHERS), None)
    if at is None:
        return ()
    if names[at].startswith("hydra_"):
        return ("mpiexec",)
    name = {"prterun": "mpirun", "orterun_wrapper": "mpirun"}.get(names[at], words[at])
    return (name, *words[at + 1 :])
