"""Figures of the explanations, drawn by the code that they explain.

    python -m benchmarks.explanation_figures      # writes the four into docs/figures

Run times are drawn from a seeded model (no measurement): a default of one second, a candidate with
a gain of 10 %, 5 % noise (4 % in the race), and a machine that slows down by half.  What decides
is that of :mod:`autotune.stats`.  The layers are those that ``lint-imports`` checks.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np

from autotune.report.figures import COLOURS, INK, drawing
from autotune.stats.racing import next_run
from autotune.stats.sequential import LookPlan
from benchmarks.common import run_benchmark

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
GAIN, NOISE, DRIFT, SEED = 0.10, 0.05, 0.5, 3
RACE_NOISE = 0.04


def launches(blocks: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """(position, seconds) of each run of the default and of the candidate, in order of blocks."""
    rng = np.random.default_rng(SEED)
    runs: tuple[list[tuple[int, float]], list[tuple[int, float]]] = ([], [])
    for block in range(blocks):
        for place, which in enumerate(rng.permutation(2)):
            position = 2 * block + place
            machine = 1 + DRIFT * position / (2 * blocks)
            seconds = machine * np.exp(rng.normal(0, NOISE)) / (1 + GAIN if which else 1)
            runs[which].append((position, float(seconds)))
    return runs


def blocks_figure(blocks: int = 12) -> str:
    """Runs of both settings in blocks on a machine that becomes slower; SVG text."""
    both = launches(blocks)
    title = "Both settings of a block meet the same machine"
    with drawing(
        title, "launch, in order; each strip, grey or white, is a block", "seconds of a run", 3.0
    ) as made:
        for block in range(0, blocks, 2):
            made.axes.axvspan(2 * block - 0.5, 2 * block + 1.5, color=INK, alpha=0.07, linewidth=0)
        for name, points, colour, mark in zip(
            ("default", "candidate"), both, COLOURS, "os", strict=False
        ):
            made.axes.plot(*zip(*points, strict=True), mark, color=colour, label=name, markersize=5)
        made.axes.set_ylim(bottom=0)
        made.axes.figure.legend(loc="outside right upper")
    return made.svg


def proof_figure() -> str:
    """The gain with its interval at each look of a proof, until it is decided; SVG text."""
    plan = LookPlan()
    default, candidate = ([s for _, s in runs] for runs in launches(plan.looks[-1]))
    with drawing(
        "A proof looks at fixed numbers of blocks",
        "blocks measured",
        "gain of the candidate, per cent",
        3.0,
    ) as made:
        made.axes.axhline(0, color=INK, linestyle="--", linewidth=1)
        ratios = [100 * (d / c - 1) for d, c in zip(default, candidate, strict=True)]
        for look in plan.looks:
            decision = plan.decide(default[:look], candidate[:look])
            seen = decision.comparison
            last = min(look, plan.looks[-1])
            low, high = (100 * seen.lo, 100 * seen.hi)
            colour = COLOURS[0] if decision.stop else COLOURS[7]
            made.axes.plot([look, look], [low, high], color=colour, linewidth=2)
            made.axes.plot(look, 100 * seen.gain, "o", color=colour, markersize=7)
            if decision.stop:
                made.axes.annotate(
                    decision.outcome,
                    (look, 100 * seen.gain),
                    xytext=(8, 0),
                    textcoords="offset points",
                    va="center",
                    weight="bold",
                )
                break
        made.axes.plot(
            range(1, last + 1), ratios[:last], ".", color=INK, alpha=0.5, label="single blocks"
        )
        made.axes.set_xlim(0, plan.looks[-1] + 1)
        made.axes.set_xticks(plan.looks)
        made.axes.figure.legend(loc="outside right upper")
    return made.svg


def race() -> list[tuple[float, list[float]]]:
    """(true gain, observed gains of its runs) of each setting at the end of a race."""
    rng = np.random.default_rng(SEED)
    gains = np.array([0.10, 0.07, 0.03, 0.0, 0.0, 0.0, 0.0, -0.05, -0.1, -0.2])
    ratios: list[list[float]] = [[] for _ in gains]  # Time over that of the default.
    while (chosen := next_run(ratios, RACE_NOISE)) is not None:
        ratios[chosen].append(float(np.exp(rng.normal(0, RACE_NOISE)) / (1 + gains[chosen])))
    return [
        (float(gain), [1 / ratio - 1 for ratio in own])
        for gain, own in zip(gains, ratios, strict=True)
    ]


def race_figure() -> str:
    """The runs that a race gave to each setting; SVG text."""
    raced = race()
    title = "The race gives more runs where they can change the choice"
    with drawing(title, "gain of a run, per cent", "", 3.2) as made:
        made.axes.axvline(0, color=INK, linestyle="--", linewidth=1)
        for place, (gain, runs) in enumerate(raced):
            made.axes.plot([100 * g for g in runs], [place] * len(runs), "o", color=COLOURS[0])
            made.axes.plot(100 * gain, place, "|", color=COLOURS[1], markersize=16)
        labels = [f"{len(runs)} run{'s' if len(runs) > 1 else ''}" for _, runs in raced]
        made.axes.set_yticks(range(len(raced)), labels)
        made.axes.invert_yaxis()
        made.axes.plot([], [], "o", color=COLOURS[0], label="one run")
        made.axes.plot([], [], "|", color=COLOURS[1], markersize=12, label="true gain")
        made.axes.figure.legend(loc="outside right upper")
    return made.svg


def layers() -> list[str]:
    """The layers of autotune from above, as ``lint-imports`` checks them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    (contract,) = (c for c in tool["importlinter"]["contracts"] if c["name"] == "Layers")
    return [layer.replace("autotune.", "") for layer in contract["layers"]]


def layers_figure() -> str:
    """The packages in layers; SVG text."""
    height, width, gap = 26, 560, 4
    rows = layers()
    parts = []
    for number, row in enumerate(rows):
        names = row.split(" | ")
        each = (width - gap * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            x, y = place * (each + gap), number * (height + gap)
            outside = name == "runner"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{each:.1f}" height="{height}" rx="3" '
                f'fill="{COLOURS[1] if outside else COLOURS[0]}" fill-opacity="0.15" '
                f'stroke="currentColor" stroke-width="0.8"/>'
                f'<text x="{x + each / 2:.1f}" y="{y + 17}" text-anchor="middle" '
                f'fill="currentColor">{name}</text>'
            )
    total = len(rows) * (height + gap)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {width + 16} {total + 12}" '
        'role="img" aria-label="The layers of the code" color="black" style="background: white" '
        'font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n"
    )


PICTURES = {
    "blocks.svg": blocks_figure,
    "race.svg": race_figure,
    "proof.svg": proof_figure,
    "layers.svg": layers_figure,
}


def main() -> int:
    """Write all figures."""
    for name, made in PICTURES.items():
        (FIGURES / name).write_text(made(), encoding="utf-8")
        print(FIGURES / name)
    return 0


if __name__ == "__main__":
    run_benchmark(main)
