"""Rate by the kernel: a token bucket on each node's device, so that senders feel a full link.

The delay line keeps the rate on its own too; but it cannot stop a sender (the kernel drops what a
full TUN device does not take), so there every byte that TCP's window allows waits in its queue and
a short message waits behind all of them.  With a token bucket in front, TCP holds back the rest.
"""

from __future__ import annotations

import shutil
import subprocess

from runner.testbed.model import Node


def shape(nodes: tuple[Node, ...], rate_bps: int, mtu: int) -> bool:
    """Put a token bucket on every node's device; False where this kernel or ``tc`` has none."""
    tool = shutil.which("tc")
    if tool is None:
        return False
    return all(_shape_one(tool, node, rate_bps, mtu) for node in nodes)


def _shape_one(tool: str, node: Node, rate_bps: int, mtu: int) -> bool:
    # A bucket must hold the largest packet.  TCP keeps its queue in front of it short by itself:
    # the limit is only there to be far away, because what is over it is lost.
    bucket = max(2 * mtu, rate_bps // 8 // 1000)
    limit = max(64 * mtu, rate_bps // 8 // 10)
    words = ["dev", "net0", "root", "tbf", "rate", f"{rate_bps}bit"]
    words += ["burst", str(bucket), "limit", str(limit)]
    done = subprocess.run(
        ["nsenter", "-t", str(node.process.pid), "-n", tool, "qdisc", "replace", *words],
        capture_output=True,
        timeout=20,
        check=False,
    )
    return done.returncode == 0
