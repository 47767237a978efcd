"""The outcome of ``verify-published`` as OpenMetrics text, for monitoring.

The textfile collector of Prometheus' node exporter reads such files (``*.prom``).  All figures are
gauges, because a verification describes a moment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from autotune.publish.documents import VerifiedFiles

METRICS = {
    "autotune_verification_timestamp_seconds": "When published files were verified last, in "
    "seconds since 1970.",
    "autotune_published_ok": "1 if every file is in force and no gain is gone, else 0.",
    "autotune_published_files": "Number of published files that were verified.",
    "autotune_published_file_in_force": "1 if the MPI library obeys the file, 0 if not; absent if "
    "it cannot be observed.",
    "autotune_published_file_expired": "1 if another version of the library is installed than "
    "that of the proof.",
    "autotune_published_file_refused": "1 if the file is not what autotune has published.",
    "autotune_published_file_unsafe": "1 if programs with operations that do not commute get wrong "
    "results.",
    "autotune_published_gain_ratio": "Measured gain over the default (T_default / T - 1).",
    "autotune_published_gain_lower_ratio": "Lower end of the 95 % interval of the measured gain.",
    "autotune_published_gain_upper_ratio": "Upper end of the 95 % interval of the measured gain.",
    "autotune_published_gain_claimed_ratio": "The gain that was published.",
    "autotune_published_gain_lost": "1 if the gain is gone or its result is contradicted, else 0.",
}
"""What each gauge is, by its name."""


def metrics_text(document: VerifiedFiles, now: float) -> str:
    """The gauges of a verification that ended at ``now`` (seconds since 1970)."""
    samples: dict[str, list[str]] = {name: [] for name in METRICS}
    for name, labels, value in _samples(document, now):
        if value is not None and not isinstance(value, str) and math.isfinite(value):
            samples[name].append(f"{name}{_labels(labels)} {float(value)!r}\n")
    lines = []
    for name, rows in samples.items():
        if rows:
            lines += [f"# HELP {name} {METRICS[name]}\n", f"# TYPE {name} gauge\n", *rows]
    return "".join([*lines, "# EOF\n"])


def _samples(document: VerifiedFiles, now: float) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Name, labels and value of each gauge; a value that is not known is None."""
    yield "autotune_verification_timestamp_seconds", {}, now
    yield "autotune_published_ok", {}, document.ok
    yield "autotune_published_files", {}, len(document.files)
    for file in document.files:
        labels = {"path": file.path, "format": file.format or "", "source": file.source or ""}
        prefix = "autotune_published_file"
        yield f"{prefix}_in_force", labels, file.in_force
        yield f"{prefix}_expired", labels, file.expired is not None
        yield f"{prefix}_refused", labels, file.refused
        yield f"{prefix}_unsafe", labels, file.unsafe is not None
    for row in document.comparisons:
        labels = {"source": row["source"], "program": row["program"]}
        figures: Mapping[str, Any] = dict(row)
        lower, upper = figures.get("gain_ci95") or (None, None)
        prefix, better = "autotune_published_gain", row["still_better"]
        yield f"{prefix}_ratio", labels, figures.get("gain")
        yield f"{prefix}_lower_ratio", labels, lower
        yield f"{prefix}_upper_ratio", labels, upper
        yield f"{prefix}_claimed_ratio", labels, figures.get("published_gain")
        yield f"{prefix}_lost", labels, None if better is None else not better


def _labels(labels: Mapping[str, str]) -> str:
    """Labels in braces; a path may hold any character, which then is escaped or replaced."""
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    texts = (
        f'{name}="{value.encode(errors="replace").decode().translate(escapes)}"'
        for name, value in labels.items()
    )
    return f"{{{','.join(texts)}}}" if labels else ""
