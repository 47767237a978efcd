"""What each rank reports at its end where it is no descendant of the supervision process.

A resource manager's daemons start such ranks (``srun``). A shell waits for the program and writes
one line to standard error: the rank's node and CPUs, its CPU time, and what Slurm says of the step.
Only the standard library is used: the supervision process reads the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MARK = "autotune-rank"
"""The word with which each line of such a report begins."""


def _half_ticks(*fields: int) -> str:
    """A shell's sum of fields that the kernel rounds down to clock ticks, each half a tick more.

    Without it, four ranks of a node seem to need some 0.05 s less than they do, which would be
    foreign load.
    """
    return "+".join(f"2*${{{n}}}+(${{{n}}}>0)" for n in fields)


_SCRIPT = f"""\
"$@"; c=$?
while read -r k v; do case $k in Cpus_allowed_list:) m=$v;; esac; done < /proc/$$/status
read -r b < /proc/sys/kernel/random/boot_id
read -r s < /proc/$$/stat; read -r t < /proc/$PPID/stat
set -- ${{s##*) }}; u=$(({_half_ticks(12, 13, 14, 15)}))
set -- ${{t##*) }}; w=$(({_half_ticks(12, 13)}))
echo "{MARK} $SLURM_PROCID $SLURMD_NODENAME $m $b $u $PPID $w ${{SLURM_CPUS_PER_TASK:--}} \
${{SLURM_MPI_TYPE:--}} ${{SLURM_DISTRIBUTION:--}} end" >&2
[ $c -le 128 ] || kill -$((c-128)) $$ 2>/dev/null
exit $c"""
"""Only builtins of the shell. A rank that ended by a signal ends the shell by the same signal."""
_LINE = re.compile(
    MARK + r" ([0-9]{1,7}) (\S{1,255}) ([0-9,-]{1,4000}) ([0-9a-f-]{36}) ([0-9]{1,15})"
    r" ([0-9]{1,10}) ([0-9]{1,15}) (\S{1,20}) (\S{1,100}) (\S{1,100}) end$"
)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_HALF_TICK_S = 0.5 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class StepRank:
    """One rank: its node, the CPUs that it may use ("0,2-3"), and its CPU time in seconds.

    ``boot`` identifies the running machine. ``daemon`` is the process that started the rank, with
    its own CPU time so far. The others are Slurm's words; "" if it says none.
    """

    node: str
    cpus: str
    boot: str
    cpu_s: float
    daemon: int
    daemon_cpu_s: float
    cpus_per_task: str = ""
    plugin: str = ""
    distribution: str = ""


def with_rank_report(program: tuple[str, ...], stream: int = 2) -> tuple[str, ...]:
    """The argument list of a rank that reports at the end of ``program``, on standard error or
    output (``stream`` 1)."""
    return ("/bin/sh", "-c", _SCRIPT.replace(">&2", f">&{stream}"), "sh", *program)


def rank_reports(lines: Iterable[str]) -> dict[int, StepRank]:
    """The reports by rank; incomplete lines are left out."""
    reports = {}
    for line in lines:
        if match := _LINE.search(line):
            rank, node, cpus, boot, own, daemon, theirs, *words = match.groups()
            texts = ["" if word == "-" else word for word in words]
            own_s, daemon_s = (int(text) * _HALF_TICK_S for text in (own, theirs))
            reports[int(rank)] = StepRank(node, cpus, boot, own_s, int(daemon), daemon_s, *texts)
    return reports


def cpu_s_here(lines: Iterable[str]) -> float:
    """CPU seconds of the reporting ranks on this machine, and of the daemons that started them."""
    reports = [one for one in rank_reports(lines).values() if one.boot == boot_id()]
    daemons: Mapping[int, float] = {
        pid: max(one.daemon_cpu_s for one in reports if one.daemon == pid)
        for pid in {one.daemon for one in reports}
    }
    return sum(one.cpu_s for one in reports) + sum(daemons.values())


@cache
def boot_id() -> str:
    """The kernel's name for this run of the machine; "" if it gives none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
