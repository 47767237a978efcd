"""The store (results database): all runs, and the studies to which they belong.

>>> with Store.open("results.db") as store:
...     study = store.study(key)
...     trial = store.add_trial(study.id, {"btl_sm_eager_limit": 8192}, "btl_sm_eager_limit=8192")
...     store.add_run(study.id, trial.id, "search", 0, 0, record)

The schema, its guarantees and queries in plain SQL are in docs/reference/database.md.
"""

from autotune.store.keys import GUARD, AppInfo, MachineInfo, MpiInfo, StudyKey
from autotune.store.listing import StudyPage, StudyQuery, StudyRow
from autotune.store.model import (
    RUNNING,
    BestRuns,
    OwnerProcess,
    StoredRun,
    StudyRecord,
    StudySummary,
    TrialDraft,
    TrialFigure,
    TrialRecord,
    WorkerRecord,
)
from autotune.store.store import Store

__all__ = [
    "GUARD",
    "RUNNING",
    "AppInfo",
    "BestRuns",
    "MachineInfo",
    "MpiInfo",
    "OwnerProcess",
    "Store",
    "StoredRun",
    "StudyKey",
    "StudyPage",
    "StudyQuery",
    "StudyRecord",
    "StudyRow",
    "StudySummary",
    "TrialDraft",
    "TrialFigure",
    "TrialRecord",
    "WorkerRecord",
]
