"""Landscapes whose parameters interact: four families with a known truth, and recorded spaces.

Every setting of a landscape is known, so random search has an exact expectation. Some settings are
invalid (the space says so) and some fail. The default is drawn from the settings that run, so it
may have any rank. A run has log-normal noise of 0 to 10 % (fixed for a landscape).

- ``decomposition``: a grid of processes, workers, blocks for each worker, and chunks, with rules of
  divisibility. The time is computation with its imbalance, plus latency and bandwidth of messages,
  plus a cliff where a chunk leaves the cache.
- ``tiles``: blocks and tiles of a loop nest under a limit of their product. The time is a product
  of terms: occupancy, reuse, and the cost of a tile that does not fit.
- ``tangled``: each parameter's effect depends on two others, by tables of random numbers. Pairs of
  levels fail together.
- ``switches``: an algorithm decides which of the other parameters act. The product of two of them
  moves the time over plateaus, a third bends it a little.

Each family has 6 landscapes on which strategies are developed, and 6 others, *held out*, for final
figures. All follow from fixed seeds, and were committed before a strategy was changed for them. The
constants were varied once, before any strategy was run: after a look at the sizes, the rank of the
default and the expectation of random search, landscapes with too many near-best settings went.

A folder of recorded spaces (``--spaces DIR``) has files of the Autotuning Association's benchmark
hub (``NAME.json.gz``; DOI 10.5281/zenodo.15364124). Their settings are those that were measured,
their default is drawn by the seed among the settings with a rank of 40 to 60 %.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space
from autotune.space.expression import parse_expression
from autotune.space.setting import Value
from autotune.space.space import Constraint
from benchmarks.search.landscapes import Land

LANDSCAPES = 6
"""Landscapes of a family, and as many held out."""
_SEED = 6501
_NOISE = (0.0, 0.10)
_LARGEST = 60_000
"""Valid settings of a landscape at most."""
_EASY = 0.003
"""Largest share of settings within 2 % of the best: else 200 random ones leave nothing to win."""

Axes = dict[str, tuple[Value, ...]]
Grid = Mapping[str, np.ndarray]
"""The value of each parameter at each setting, shaped to be broadcast."""


@dataclass(frozen=True)
class Rule:
    """A rule of a space as text, and where on the grid it holds."""

    text: str
    holds: np.ndarray


@dataclass(frozen=True)
class Plan:
    """A landscape before its default is drawn: the log time of each setting of the grid.

    ``inf`` stands for a setting that fails.
    """

    axes: Axes
    rules: tuple[Rule, ...]
    log_time: np.ndarray


@dataclass(frozen=True)
class KnownLand:
    """A landscape of which every setting is known; ``times`` are relative to the default, sorted.

    Failures are at the end, with the time of the slowest setting that runs.
    """

    land: Land
    times: np.ndarray

    @cached_property
    def best(self) -> float:
        """The smallest time."""
        return float(self.times[0])

    def expected_best(self, draws: int) -> float:
        """Expectation of the smallest of ``draws`` different random settings."""
        count = len(self.times)
        if draws >= count:
            return self.best
        # P(all draws lie behind the first k) = C(count - k, draws) / C(count, draws).
        rows = np.arange(count - draws + 1)
        parts = (count - draws - rows[:-1]) / (count - rows[:-1])
        behind = np.append(np.exp(np.append(0.0, np.cumsum(np.log(parts)))), 0.0)
        return float(np.sum(self.times[: len(rows)] * (behind[:-1] - behind[1:])))

    def score(self, setting: Setting, evaluations: int) -> float:
        """(S_random - F) / (S_random - S_opt) after so many evaluations; 1 is the best.

        The default is known and costs no evaluation, so F is at most 1.
        """
        seen = min(self.land.truth(setting), 1.0)
        expected = self.expected_best(evaluations)
        return (expected - seen) / (expected - self.best)


FAMILIES = ("decomposition", "tiles", "tangled", "switches")


@lru_cache(maxsize=64)
def landscape(family: str, number: int, *, held_out: bool = False) -> KnownLand:
    """One landscape of a family; the same for equal arguments. Raises KeyError for a wrong name."""
    kind = FAMILIES.index(family)
    name = f"{family}-{'held-' if held_out else ''}{number:02d}"
    for attempt in range(100):
        rng = np.random.default_rng([_SEED, kind, int(held_out), number, attempt])
        plan = _PLANS[family](rng)
        settled_land = _settled(name, plan, rng)
        if settled_land is not None:
            return settled_land
    raise AssertionError(f"{name}: no draw has the size of a landscape")


def _settled(name: str, plan: Plan, rng: np.random.Generator) -> KnownLand | None:
    """The landscape of a plan with its default; None if it is too large, too small, or flat."""
    shape = plan.log_time.shape
    valid = np.ones(shape, dtype=bool)
    for rule in plan.rules:
        valid &= np.broadcast_to(rule.holds, shape)
    runs = valid & np.isfinite(plan.log_time)
    if not 300 <= valid.sum() <= _LARGEST or runs.sum() < 200:
        return None
    places = np.flatnonzero(runs)
    default = int(rng.choice(places))
    log_ratio = plan.log_time - plan.log_time.flat[default]
    ratios = np.exp(log_ratio.flat[places])
    if ratios.min() > 0.95 or np.mean(ratios < 1.02 * ratios.min()) > _EASY:
        return None
    codes = np.unravel_index(default, shape)
    parameters = tuple(
        Parameter(key, levels, target="arg", default=levels[int(code)])
        for (key, levels), code in zip(plan.axes.items(), codes, strict=True)
    )
    rules = tuple(Constraint(parse_expression(rule.text)) for rule in plan.rules)
    noise = float(rng.uniform(*_NOISE))
    ratio_pairs = zip(
        np.flatnonzero(valid).tolist(), np.exp(log_ratio[valid]).tolist(), strict=True
    )
    return _known(Space(name, parameters, rules), dict(ratio_pairs), noise)


def _known(space: Space, ratios: Mapping[int, float], noise: float) -> KnownLand:
    """The landscape of ratios by their place in the product of all levels (in C order)."""
    index = [{level: k for k, level in enumerate(p.levels)} for p in space.parameters]
    shape = tuple(len(levels) for levels in index)
    defaults = [p.default for p in space.parameters]

    def truth(setting: Setting) -> float:
        place = 0
        for levels, size, parameter, default in zip(
            index, shape, space.parameters, defaults, strict=True
        ):
            value = setting.get(parameter.name, default)
            assert value is not None
            place = place * size + levels[value]
        return ratios[place]

    def draw(setting: Setting, rng: np.random.Generator) -> tuple[float, str]:
        ratio, factor = truth(setting), math.exp(noise * rng.standard_normal())
        return (ratio * factor, "ok") if math.isfinite(ratio) else (math.inf, "failed")

    times = np.sort(np.array(list(ratios.values())))
    finite = times[np.isfinite(times)]
    times[len(finite) :] = finite[-1]
    singles = (Setting({p.name: level}) for p in space for level in p.choices if level is not None)
    single = min((truth(s) for s in singles if space.is_valid(s)), default=1.0)
    best = float(times[0])
    land = Land(space.name, space, draw, truth, best, min(single, 1.0), False)
    return KnownLand(land, times)


def _grid(axes: Axes) -> Grid:
    arrays = [np.array(levels, dtype=object) for levels in axes.values()]
    numbers = [a.astype(float) if not isinstance(a[0], str) else np.arange(len(a)) for a in arrays]
    return dict(zip(axes, np.ix_(*numbers), strict=True))


def _powers(low: int, high: int) -> tuple[int, ...]:
    return tuple(2**k for k in range(low, high + 1))


def _some(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _decomposition(rng: np.random.Generator) -> Plan:
    cores = int(rng.choice([16, 24, 32, 48]))
    edge = int(rng.choice([96, 120, 144, 192]))
    sides = tuple(n for n in (1, 2, 3, 4, 6, 8, 12) if edge % n == 0)
    axes: Axes = {
        "px": sides,
        "py": sides,
        "pz": sides[: _some(rng, 3, len(sides))],
        "workers": _powers(0, _some(rng, 2, 3)),
        "blocks": _powers(0, _some(rng, 2, 4)),
        "chunk_kib": _powers(0, _some(rng, 6, 9)),
        "order": ("rows", "planes", "curve")[: _some(rng, 2, 3)],
    }
    g = _grid(axes)
    processes = g["px"] * g["py"] * g["pz"]
    rules = (
        Rule(f"px * py * pz * workers <= {cores}", processes * g["workers"] <= cores),
        Rule(f"px * py * pz * workers * 4 >= {cores}", processes * g["workers"] * 4 >= cores),
        Rule(f"{edge} % (px * blocks) == 0", np.mod(edge, g["px"] * g["blocks"]) == 0),
    )
    cells = edge**3 / processes
    imbalance = rng.uniform(0.1, 0.6) / np.sqrt(g["blocks"] * g["workers"])
    compute = cells / g["workers"] ** rng.uniform(0.75, 1.0) * (1 + imbalance)
    area = (edge**2) * (
        (g["px"] > 1) / (g["py"] * g["pz"])
        + (g["py"] > 1) / (g["px"] * g["pz"])
        + (g["pz"] > 1) / (g["px"] * g["py"]) * rng.uniform(1, 3)
    )
    messages = area * 8 / (1024 * g["chunk_kib"]) + g["blocks"] * g["workers"]
    latency = messages * 10 ** rng.uniform(1.5, 3.0)
    bandwidth = area * 10 ** rng.uniform(0.3, 1.3) * (1 + 0.3 * np.log2(processes))
    cache = 2.0 ** rng.integers(4, 8)
    spills = g["chunk_kib"] * g["workers"] > cache
    overlap = np.minimum(0.8, 0.2 * np.log2(g["blocks"] + 1) * rng.uniform(0.5, 1.5))
    exposed = (latency + bandwidth) * (1 - overlap)
    order = rng.uniform(0.9, 1.1, (len(axes["order"]), 2))
    factor = order[g["order"].astype(int), (g["blocks"] > 4).astype(int)]
    time = compute * factor * (1 + rng.uniform(0.2, 1.0) * spills) + exposed
    return Plan(axes, rules, np.log(time))


def _tiles(rng: np.random.Generator) -> Plan:
    axes: Axes = {
        "block_x": tuple(range(8, 8 * _some(rng, 8, 16) + 1, 8)),
        "block_y": _powers(0, _some(rng, 3, 4)),
        "tile_x": tuple(range(1, _some(rng, 3, 5) + 1)),
        "tile_y": tuple(range(1, _some(rng, 3, 5) + 1)),
        "shared": (0, 1),
        "padded": (0, 1),
        "unroll": _powers(0, _some(rng, 1, 2)),
    }
    g = _grid(axes)
    most = int(rng.choice([256, 512, 1024]))
    halo = 2 * _some(rng, 1, 8)
    room = int(rng.choice([2048, 4096, 12288]))
    width, height = g["block_x"] * g["tile_x"], g["block_y"] * g["tile_y"]
    staged = (width + halo) * (height + halo)
    rules = (
        Rule(f"block_x * block_y <= {most}", g["block_x"] * g["block_y"] <= most),
        Rule("padded == 0 or block_x % 32 != 0", (g["padded"] == 0) | (g["block_x"] % 32 != 0)),
        Rule(
            f"shared == 0 or (block_x * tile_x + {halo}) * (block_y * tile_y + {halo}) < {room}",
            (g["shared"] == 0) | (staged < room),
        ),
    )
    threads, work = g["block_x"] * g["block_y"], g["tile_x"] * g["tile_y"]
    filled = threads / (np.ceil(threads / 32) * 32)
    peak = 2.0 ** rng.uniform(5.5, 8.5)
    occupancy = np.exp(-((np.log2(threads / peak)) ** 2) / (2 * rng.uniform(1.0, 2.5) ** 2))
    registers = work * g["unroll"] * (1 + g["shared"])
    spills = 1 + rng.uniform(0.1, 0.5) * np.maximum(0, np.log2(registers / rng.uniform(6, 20)))
    reuse = staged / (width * height)
    reads = np.where(g["shared"] == 1, reuse, reuse ** rng.uniform(0.3, 0.7) * rng.uniform(1.2, 3))
    conflicts = 1 + rng.uniform(0.2, 0.8) * (g["shared"] * (1 - g["padded"]) * (g["tile_x"] > 1))
    loops = 1 + rng.uniform(0.1, 0.4) / (work * g["unroll"])
    time = reads * conflicts * spills * loops / (filled * (0.15 + occupancy))
    lost = (registers > rng.uniform(25, 60)) & (g["shared"] == 1)
    log_time = np.broadcast_to(np.log(time), tuple(map(len, axes.values()))).copy()
    log_time[np.broadcast_to(lost, log_time.shape)] = math.inf
    return Plan(axes, rules, log_time)


def _tangled(rng: np.random.Generator) -> Plan:
    count = _some(rng, 5, 12)
    most_levels = 8 if count < 7 else 5 if count < 9 else 3
    sizes = [_some(rng, 2, most_levels) for _ in range(count)]
    axes: Axes = {
        f"p{k}": _powers(0, size - 1)
        if rng.random() < 0.6
        else tuple(f"word{level}" for level in range(size))
        for k, size in enumerate(sizes)
    }
    shape = tuple(sizes)
    log_time = np.zeros(shape)
    for k in range(count):
        others = rng.permutation([j for j in range(count) if j != k])[:2].tolist()
        places = sorted([k, *others])
        table = rng.normal(0, rng.uniform(0.05, 0.25), [sizes[j] for j in places])
        log_time = log_time + table.reshape([sizes[j] if j in places else 1 for j in range(count)])
    for _ in range(_some(rng, 1, 3)):
        first, second = sorted(rng.permutation(count)[:2].tolist())
        pair = np.zeros([sizes[j] if j in (first, second) else 1 for j in range(count)], dtype=bool)
        pair[tuple(_some(rng, 0, n - 1) if n > 1 else 0 for n in pair.shape)] = True
        log_time = np.where(pair, math.inf, log_time)
    sums = [k for k, levels in enumerate(axes.values()) if not isinstance(levels[0], str)][:2]
    rules: tuple[Rule, ...] = ()
    if len(sums) == 2:
        (a, b), g = (list(axes)[k] for k in sums), _grid(axes)
        most = int(max(axes[a]) * max(axes[b])) // 4  # type: ignore[operator]
        rules = (Rule(f"{a} * {b} <= {most}", g[a] * g[b] <= most),)
    return Plan(axes, rules, log_time)


def _switches(rng: np.random.Generator) -> Plan:
    words = ("ring", "tree", "pipeline", "pairs", "linear")[: _some(rng, 3, 5)]
    long = _some(rng, 10, 30)
    axes: Axes = {
        "algorithm": words,
        "segment": tuple(range(4, 4 * long + 1, 4)),
        "fan": tuple(range(2, _some(rng, 5, 8) + 1)),
        "depth": _powers(0, _some(rng, 2, 4)),
        "window": _powers(0, _some(rng, 2, 4)),
        "copy": ("kernel", "shared"),
    }
    g = _grid(axes)
    most = int(4 * long * rng.choice([4, 8]))
    rules = (
        Rule(f"segment * depth <= {most}", g["segment"] * g["depth"] <= most),
        Rule("window <= segment", g["window"] <= g["segment"]),
    )
    names = ["segment", "fan", "depth", "window"]
    log_time = np.zeros(tuple(map(len, axes.values())))
    for code in range(len(words)):
        first, second, third = rng.permutation(4)[:3].tolist()
        product = np.log2(g[names[first]]) + rng.choice([-1.0, 1.0]) * np.log2(g[names[second]])
        low, high = float(product.min()), float(product.max())
        steps = np.sort(rng.uniform(low, high, _some(rng, 4, 9)))
        heights = rng.uniform(-0.5, 0.5, len(steps) + 1)
        plateau = heights[np.searchsorted(steps, product)] + rng.normal(0, 0.2)
        kernel = rng.normal(0, 0.15) * (g["copy"] == 0)
        parts = np.log2(g[names[third]]) / math.log2(float(g[names[third]].max()))
        bend = rng.uniform(0.05, 0.3) * (parts - rng.uniform(0, 1)) ** 2
        log_time = log_time + (g["algorithm"] == code) * (plateau + kernel + bend)
    cliff = (g["algorithm"] == _some(rng, 0, len(words) - 1)) & (g["depth"] >= 4)
    log_time = log_time + rng.uniform(0.5, 2.0) * cliff
    return Plan(axes, rules, log_time)


_PLANS: Mapping[str, Callable[[np.random.Generator], Plan]] = {
    "decomposition": _decomposition,
    "tiles": _tiles,
    "tangled": _tangled,
    "switches": _switches,
}


_FOREIGN_RULES: Mapping[str, Sequence[str]] = {
    "convolution_kernel": (
        "use_padding == 0 or block_size_x % 32 != 0",
        "block_size_x * block_size_y <= 1024",
        "use_padding == 0 or use_shmem != 0",
        (
            "use_shmem == 0 or "
            "(block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) < 12288"
        ),
    )
}
"""The rules of the recorded kernels, which their files do not hold."""


def recorded_names(folder: Path) -> list[str]:
    """The spaces of a folder by name; raises UsageError if there are none."""
    names = sorted(file.name.removesuffix(".json.gz") for file in folder.glob("*.json.gz"))
    if not names:
        raise UsageError(
            f"{folder} has no recorded spaces; expected files NAME.json.gz of the benchmark hub",
            code="benchmark.fails",
        )
    return names


@lru_cache(maxsize=64)
def recorded(folder: Path, name: str, seed: int) -> KnownLand:
    """One recorded space, with the default of this seed. Raises UsageError for unknown rules."""
    document = json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
    kernel = document["kernel_name"]
    if kernel not in _FOREIGN_RULES:
        raise UsageError(
            f"{folder / name}: the rules of kernel {kernel!r} are not known here; expected one of "
            f"{', '.join(_FOREIGN_RULES)}",
            code="benchmark.fails",
        )
    axes: Axes = {
        key: tuple(document["tune_params"][key])
        for key in document["tune_params_keys"]
        if len(document["tune_params"][key]) > 1
    }
    times = {_place(axes, entry): _milliseconds(entry) for entry in document["cache"].values()}
    ran = sorted(place for place, value in times.items() if math.isfinite(value))
    ran.sort(key=times.__getitem__)
    rng = np.random.default_rng([_SEED, seed])
    default = ran[int(rng.integers(int(0.4 * len(ran)), int(0.6 * len(ran))))]
    codes = np.unravel_index(default, tuple(map(len, axes.values())))
    parameters = tuple(
        Parameter(key, levels, target="arg", default=levels[int(code)])
        for (key, levels), code in zip(axes.items(), codes, strict=True)
    )
    rules = tuple(Constraint(parse_expression(text)) for text in _FOREIGN_RULES[kernel])
    ratios = {place: value / times[default] for place, value in times.items()}
    return _known(Space(f"{name}-{seed}", parameters, rules), ratios, 0.0)


def _place(axes: Axes, entry: Mapping[str, Any]) -> int:
    place = 0
    for key, levels in axes.items():
        place = place * len(levels) + levels.index(entry[key])
    return place


def _milliseconds(entry: Mapping[str, Any]) -> float:
    return float(entry["time"]) if isinstance(entry["time"], int | float) else math.inf
