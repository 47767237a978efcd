"""JSON Schemas of what the commands write with ``--json``: one file for each kind of document.

The files are the source of truth; the tests validate the output of the commands with them.  They
follow JSON Schema 2020-12.  docs/reference/json.md lists them.
"""

from __future__ import annotations

import difflib
import json
from importlib import resources
from typing import Any

from autotune.errors import UsageError

OUTPUTS: dict[str, tuple[str, ...]] = {
    "search": ("search", "proving-elsewhere"),
    "worker": ("search", "proving-elsewhere"),
    "status": ("status",),
    "run": ("run",),
    "compare": ("compare",),
    "noise": ("noise",),
    "explore": ("explore", "explore-dry-run"),
    "features": ("features", "features-list"),
    "train": ("train",),
    "predict": ("predict",),
    "anova": ("anova",),
    "classwide": ("classwide",),
    "calibrate": ("calibrate",),
    "collectives": ("collectives",),
    "importance": ("importance",),
    "studies": ("studies",),
    "show": ("show",),
    "report": ("report",),
    "apps": ("apps",),
    "doctor": ("doctor",),
    "publish": ("publish", "publish-dry-run", "publish-formats"),
    "unpublish": ("unpublish",),
    "verify-published": ("verify-published",),
    "cluster list": ("cluster-list",),
    "cluster show": ("cluster-show",),
    "cluster split": ("cluster-split",),
    "dataset list": ("dataset-list",),
    "dataset describe": ("dataset-describe",),
    "dataset classes": ("dataset-classes",),
    "space list": ("space-list",),
    "space show": ("space-show",),
    "space check": ("space-check",),
    "space discover": ("space-discover",),
    "evaluate predict": ("evaluate-predict",),
    "testbed up": ("testbed-up",),
    "testbed status": ("testbed-status",),
    "testbed down": ("testbed-down",),
    "testbed run": ("testbed-run",),
    "schema": ("schema",),
}
"""The schemas of each command with ``--json``, by its words."""
ERROR = "error"
"""The schema of what any command writes that fails."""


def schema_names() -> list[str]:
    """The names of all schemas, in the order of the commands."""
    return [*dict.fromkeys(name for names in OUTPUTS.values() for name in names), ERROR]


def load_schema(name: str) -> dict[str, Any]:
    """The schema ``name`` as JSON types.  Raises UsageError for an unknown name."""
    if name not in schema_names():
        near = difflib.get_close_matches(name, schema_names(), 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"there is no JSON schema {name!r}{meant}  To list all: autotune schema",
            code="schema.unknown",
        )
    place = resources.files(__name__) / f"{name}.json"
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return found
