"""The probe: a few lines of shell that stand in a program's place and say where they run.

A shell is there in every container, needs no MPI and starts in milliseconds. Its record is one line
of text, so that ranks of other nodes reach this process, too, through the launcher.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autotune.check.launch_facts import RankFacts
from runner.cpus import cpus_of

MARK = "autotune-check"
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
"""Variables with the number of a rank, the most certain first."""
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS")
VARIABLES = (
    *(*RANK_VARIABLES, *SIZE_VARIABLES, "PMIX_NAMESPACE", "PMI_FD", "PMI_PORT"),
    *("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"),
    *("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_LIBRARY", "MKL_NUM_THREADS"),
    *("OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "FI_PROVIDER", "UCX_TLS", "GLIBC_TUNABLES"),
    *("SLURM_CPUS_PER_TASK", "LD_LIBRARY_PATH", "I_MPI_PIN_DOMAIN"),
)
"""Variables of a rank that rules read."""
_LONGEST = 300
"""Characters of a value; a record must fit into one write to a pipe."""
_SPACES = ("user", "pid", "ipc", "mnt")
_SCRIPT = f"""while read -r key value; do case $key in
Cpus_allowed_list:) cpus=$value;; CapEff:) capabilities=$value;; esac; done < /proc/self/status
record="{MARK}|$(hostname 2>/dev/null || echo)|$$|$cpus|$capabilities"
for space in {" ".join(_SPACES)}; do
record="$record|$(readlink /proc/$$/ns/$space 2>/dev/null)"; done
for name in {" ".join(VARIABLES)}; do
eval "is=\\${{$name+yes}} value=\\${{$name-}}"
[ -n "$is" ] && record="$record|$name=$(printf %.{_LONGEST}s "$value")"; done
printf '%s|end\\n' "$record"
[ $# = 0 ] || exec "$@"
"""
_RECORD = re.compile(rf"{MARK}\|(?P<fields>.*?)\|end")
_INODE = re.compile(r"\[(\d+)\]")


def probe_program(*program: str) -> tuple[str, ...]:
    """The words of the probe; ``program`` is executed in its place afterwards, if it is given."""
    return ("/bin/sh", "-c", _SCRIPT, "sh", *program)


def read_records(text: str) -> tuple[RankFacts, ...]:
    """The ranks whose records are in the output of a launch, in their order."""
    ranks = [_rank(match["fields"].split("|")) for match in _RECORD.finditer(text)]
    return tuple(sorted((rank for rank in ranks if rank), key=lambda rank: rank.rank))


def _rank(fields: Sequence[str]) -> RankFacts | None:
    """One rank; None for a damaged record."""
    if len(fields) < 4 + len(_SPACES):
        return None
    host, pid, cpus, capabilities, *rest = fields
    spaces = {
        name: int(match[1])
        for name, text in zip(_SPACES, rest, strict=False)
        if (match := _INODE.search(text))
    }
    pairs = (field.partition("=") for field in rest[len(_SPACES) :])
    environment = {name: value for name, _, value in pairs}
    try:
        mask = cpus_of(cpus)
        return RankFacts(
            rank_number(environment) or 0,
            host,
            int(pid),
            mask,
            (mask,),
            environment=environment,
            namespaces=spaces,
            capabilities=int(capabilities, 16) if capabilities else None,
        )
    except ValueError:
        return None


def rank_number(environment: Mapping[str, str]) -> int | None:
    """The number of a rank by its variables; None if it has none."""
    numbers = (environment.get(name, "") for name in RANK_VARIABLES)
    return next((int(text) for text in numbers if text.isdecimal()), None)


def world_size(environment: Mapping[str, str], family: str, version: str) -> int | None:
    """Ranks of the world that a program of this family finds by its variables; None: unknown.

    It is 1 where the launcher speaks another protocol than the family: PMIx for Open MPI, PMI for
    MPICH and Intel MPI. Builds for Slurm may speak both.
    """
    pmix, pmi = "PMIX_RANK" in environment, bool({"PMI_RANK", "PMI_FD"} & environment.keys())
    own, other = (pmix, pmi) if family == "openmpi" else (pmi, pmix)
    if other and not own and "SLURM_PROCID" in environment and not version.startswith("5."):
        return None
    if not own:
        return 1
    sizes = (environment.get(name, "") for name in SIZE_VARIABLES)
    return next((int(text) for text in sizes if text.isdecimal()), None)
