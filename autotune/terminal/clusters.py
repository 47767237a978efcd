"""Terminal output of applications and clusters."""

from __future__ import annotations

from autotune.config.app import App
from autotune.terminal.render import print_line, print_table
from runner.cpus import cpu_list


def print_app(app: App) -> None:
    print_line(f"{app.name}: {app.description}")
    print_line(f"  command  {' '.join(app.command)}")
    several = f" ({app.metric_choice} of several)" if app.metric_choice else ""
    print_line(f"  metric   {app.metric or 'wall time'}{several}")
    print_line(f"  verify   {app.verify or 'exit code'}")
    rows = [
        [f"{key}{' *' if key == app.usual_input else ''}", given.description]
        for key, given in app.inputs.items()
    ]
    print_table("", ["input (* default)", "description"], rows)
    for key, form in app.fidelity.items():
        print_line(f"  cheap form of {key} (--fidelity): {form}")


def cpus_words(cpus: frozenset[int]) -> str:
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"
