"""What a testbed could leave behind on the machine."""

from __future__ import annotations

from pathlib import Path

from runner import testbed as tb
from runner.testbed.processes import alive, with_token


def of(bed: tb.Testbed) -> list[str]:
    """Every trace of a testbed that is still there, in words."""
    found = [f"process {p.pid}" for p in with_token(bed.token)]
    keepers = (bed.line, *(node.process for node in bed.nodes))
    found += [f"keeper {p.pid}" for p in keepers if alive(p)]
    if (Path("/sys/class/net") / bed.device).exists():
        found.append(f"device {bed.device}")
    if Path(bed.directory).exists():
        found.append(f"directory {bed.directory}")
    if bed.directory in Path("/proc/self/mountinfo").read_text():
        found.append("a mount in our own namespace")
    return found
