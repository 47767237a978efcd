"""What a testbed needs of the machine; what is missing is said in one message."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from runner.errors import RunnerError

TUN = Path("/dev/net/tun")
SET_NAMESPACE = "nsenter"


def missing() -> list[str]:
    """What this machine or user lacks, in words; empty where a testbed can be brought up."""
    found = []
    if sys.platform != "linux":
        return ["Linux (network namespaces)"]
    if os.geteuid() != 0:
        found.append("root (for network namespaces and devices); try sudo")
    if not TUN.exists():
        found.append(f"{TUN} (kernel module tun: modprobe tun)")
    if shutil.which("cc") is None:
        found.append("a C compiler, cc (install gcc)")
    if shutil.which(SET_NAMESPACE) is None:
        found.append("nsenter (package util-linux)")
    return found


def require() -> None:
    """Raise RunnerError naming everything that is missing."""
    lacking = missing()
    if lacking:
        raise RunnerError(
            "a testbed cannot be started here; it needs\n"
            + "\n".join(f"  - {what}" for what in lacking)
            + "\nEverything else of autotune works without it (--cluster local)."
        )
