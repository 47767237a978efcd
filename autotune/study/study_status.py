"""The statuses of a study, and the names of what its workers store beside its trials.

Commands that only list studies import this module, which needs nothing.
"""

from __future__ import annotations

from typing import Literal, get_args

Status = Literal[
    "recommended",
    "keep_default",
    "contradicted",
    "inconclusive",
    "too_noisy",
    "unguarded",
    "interrupted",
]
"""The possible answers; ``unguarded`` means measured without the guard, so nothing is proven.

``contradicted``: a setting won its proof, and an objection speaks against it, so nothing is
recommended.
"""
FINISHED: tuple[str, ...] = tuple(one for one in get_args(Status) if one != "interrupted")
"""The statuses of a study that has ended with a result."""
FINISH = "finish"
"""The role of the worker that makes the proofs of the whole study."""
JOB_VARIABLE = "AUTOTUNE_WORKER_JOB"
"""Variable with the mark of the job in which a worker runs; its sessions have it, too."""
SESSION = "session:"
"""Beginning of the names under which a study stores its sessions."""
