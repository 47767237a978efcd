"""What the benchmarks share: a study on this machine, and how figures are printed."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from autotune.cli.options import TargetWords, space_for
from autotune.study.conduct import Request
from autotune.study.plan import SearchPlan
from runner.machine import describe


def request(
    *,
    app: str | None = None,
    program: list[str] | None = None,
    input_name: str | None = None,
    ranks: int | None = None,
    space: str | None = None,
    strategy: str = "ga",
    seed: int = 0,
    trials: int = 100,
    metric: str | None = None,
    guard: bool = True,
    remeasure: bool = True,
    **plan: Any,
) -> Request:
    """A search study as the command line would make it."""
    words = TargetWords(program, app, input_name, ranks, "local", None, metric, None, None)
    target = words.resolve()
    return Request(
        target=target,
        space=space_for(target, space),
        strategy=strategy,
        options={},
        seed=seed,
        plan=SearchPlan(trials=trials, **plan),
        guard=guard,
        remeasure=remeasure,
    )


def report(name: str, figures: dict[str, Any], out: str | None) -> None:
    """Print the figures with date, machine, commit and command; write them as JSON to ``out``."""
    machine = describe()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    ).stdout.strip()
    data = {
        "benchmark": name,
        "date": f"{datetime.date.today()}",
        "machine": f"{machine.cpu_model}, {machine.cores} cores",
        "commit": commit or "unknown",
        "command": " ".join(["python -m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]),
        **figures,
    }
    width = max(len(key) for key in data)
    for key, value in data.items():
        print(f"{key:<{width}}  {value}")
    if out:
        Path(out).write_text(json.dumps(data, indent=2) + "\n")
