"""Doubts about a publication: reasons not to publish here.

They are another machine, MPI, cluster or program than measured, and no proof. The user may insist.
"""

from __future__ import annotations

import hashlib

from autotune.config.cluster import Cluster
from autotune.measurement.study_executables import changed_executables
from autotune.notes import Note
from autotune.publish.content import Evidence
from autotune.store import Store, StudyRecord
from autotune.targets.executables import change_words
from autotune.wording import UNGUARDED
from runner.machine import describe_machine
from runner.mpi.library import Library

_GIB = 2**30


def program_doubts(store: Store, study: StudyRecord) -> list[Note]:
    """A doubt if the program that was measured is not the one that would be run now."""
    changes = changed_executables(store, study.id)
    if not changes:
        return []
    return [
        Note(
            "study.program_changed",
            f"it was measured with another program: {change_words(changes)}",
            {"files": [change.to_json() for change in changes]},
        )
    ]


def study_doubts(study: StudyRecord, cluster: Cluster) -> list[Note]:
    """A doubt for another machine, and one for another definition of the cluster."""
    machine, study_machine = describe_machine(), study.key.machine
    doubts = []
    same = (
        study_machine.cores,
        study_machine.cpu_model,
        round(study_machine.memory_bytes / _GIB),
    ) == (
        machine.cores,
        machine.cpu_model,
        round(machine.memory_bytes / _GIB),
    )
    if not same:
        doubts.append(
            Note(
                "machine.other",
                f"it was measured on another machine ({study_machine.cores} cores, "
                f"{study_machine.cpu_model}); this one has {machine.cores} cores, "
                f"{machine.cpu_model}",
                {"measured": study_machine.cpu_model, "here": machine.cpu_model},
            )
        )
    now = hashlib.sha256(cluster.definition.encode()).hexdigest()
    if study.key.cluster == cluster.name and study.key.cluster_hash != now:
        doubts.append(
            Note(
                "cluster.other_definition",
                f"it was measured with another definition of cluster {cluster.name} "
                "(interconnect, nodes, launch options)",
                {"cluster": cluster.name},
            )
        )
    return doubts


def common_doubts(evidence: Evidence, cluster: Cluster, library: Library) -> list[Note]:
    """Doubts about any source: no proof, another cluster, another MPI library."""
    doubts = []
    if not evidence.guarded:
        doubts.append(Note("guard.off", f"it was {UNGUARDED}, so it proves nothing"))
    elif not evidence.proven:
        doubts.append(Note("setting.unproven", "its setting was not proven to be faster"))
    if evidence.cluster != cluster.name:
        doubts.append(
            Note(
                "cluster.other",
                f"it was measured on cluster {evidence.cluster}, not on {cluster.name}; did "
                f"you mean --cluster {evidence.cluster}?",
                {"measured": evidence.cluster, "here": cluster.name},
            )
        )
    evidence_mpi = f"{evidence.mpi_family} {evidence.mpi_version}"
    if evidence_mpi != f"{library.family} {library.version}":
        doubts.append(
            Note(
                "mpi.other",
                f"it was measured with {evidence_mpi}; this is {library.family} {library.version} "
                f"in {library.bin} (--mpi selects another)",
                {"measured": evidence_mpi, "here": f"{library.family} {library.version}"},
            )
        )
    return doubts


def machine_doubts(fingerprint: str) -> list[Note]:
    """A doubt if a result is of another machine."""
    own_fingerprint = describe_machine().fingerprint
    if fingerprint in (own_fingerprint, own_fingerprint[:12]):
        return []
    words = f"it was measured on machine {fingerprint}, but this one is {own_fingerprint}"
    return [Note("machine.other", words, {"measured": fingerprint, "here": own_fingerprint})]
