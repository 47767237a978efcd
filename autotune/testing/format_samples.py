"""What the formats are given in tests: everything a file can hold, and evidence for it."""

from __future__ import annotations

from pathlib import Path

from autotune.config.cluster import Cluster
from autotune.publish.content import Content, Evidence
from autotune.publish.formats import Format
from autotune.publish.formats.mpich import MpichJson
from autotune.publish.install import Text
from autotune.publish.plan import Planned, plan
from autotune.publish.source import Proposal
from autotune.rules import Rule
from runner.mpi.library import Library

OLD = Library("openmpi", "4.1.8", "/opt/old/bin", "/opt/old/bin/mpirun")
NEW = Library("openmpi", "5.0.11", "/opt/new/bin", "/opt/new/bin/mpirun")
MPICH = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpirun")
CLUSTER = Cluster(name="local")
FULL = Content(
    {
        "mca": {
            "btl_sm_eager_limit": "8192",
            "coll_tuned_bcast_algorithm": "6",
            "coll_tuned_use_dynamic_rules": "1",
            "MPIR_CVAR_CH4_SHM_POSIX_EAGER": "iqueue",
        },
        "prte": {"prte_some_parameter": "1"},
        "pmix": {"pmix_some_parameter": "2"},
        "placement": {"map_by": "slot:PE=2", "bind_to": "core"},
        "env": {"OMP_PROC_BIND": "close"},
    }
)
TREES = Content(rules=(Rule("bcast", 1, 0, "MPIR_Bcast_intra_binomial"),))


def library_of(fmt: Format) -> Library:
    return MPICH if fmt.family == "mpich" else NEW


def content_of(fmt: Format, content: Content = FULL) -> Content:
    return fmt.part(TREES if isinstance(fmt, MpichJson) else content, library_of(fmt))


def evidence(**words: object) -> Evidence:
    given = {"source": "study:abc", "proven": True, "status": "recommended", "setting": "a=1"}
    return Evidence(**given | words)  # type: ignore[arg-type]


def planned(fmt: Format, path: Path, seen: Evidence | None = None) -> Planned:
    proposal = Proposal(content_of(fmt), seen or evidence(), (), True)
    return plan(proposal, [fmt], CLUSTER, library_of(fmt), path, unproven=True)[0]


def text_of(fmt: Format, path: Path, seen: Evidence | None = None) -> Text:
    one = planned(fmt, path, seen)
    return one.text(one.content, library_of(fmt), "seen")
