"""Compiled regions in running jobs: the same results on the compiled core and in Python."""

from __future__ import annotations

from typing import Any

import pytest

from runner.runtimes import mate
from tests.refusals import refused

RING = """
class Part:
    def __init__(self, ctx, cells):
        self.ctx = ctx
        self.fields = [np.arange(cells + 2.0) * (ctx.rank + 1), np.zeros(cells + 2)]
        self.left, self.right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
        self.sent = [np.zeros(1), np.zeros(1)]
        self.received = [np.zeros(1), np.zeros(1)]
        self.last = cells
        self.seen = []

@graph.region(depends=["unpack*", "send*"], compiled=True)
def compute(part, i):
    old, new = part.fields[i % 2], part.fields[(i + 1) % 2]
    for k in range(1, part.last + 1):
        new[k] = 0.25 * old[k - 1] + 0.5 * old[k] + 0.25 * old[k + 1]

@graph.region(depends=["unpack*"], compiled=True)
def receive(part, i):
    part.ctx.irecv(part.received[0], part.left, 1)
    part.ctx.irecv(part.received[1], source=part.right, tag=2)

@graph.region(depends=["compute", "send*"], compiled=True)
def pack(part, i):
    part.sent[0][0] = part.fields[(i + 1) % 2][1]
    part.sent[1][0] = part.fields[(i + 1) % 2][part.last]

@graph.region(depends=["pack"], compiled=True)
def send(part, i):
    part.ctx.isend(part.sent[0], part.left, tag=2)
    part.ctx.isend(part.sent[1], part.right, 1)

@graph.region(depends=["compute", "receive"], compiled=True)
def unpack(part, i):
    part.fields[(i + 1) % 2][0] = part.received[0][0]
    part.fields[(i + 1) % 2][part.last + 1] = part.received[1][0]

@graph.region(depends=["unpack", "note*"])
def note(part, i):
    part.seen.append(i)

async def main(ctx):
    part = Part(ctx, 6 + ctx.rank)
    await ctx.execute(graph, range(3), state=part)
    await ctx.execute(graph, range(3, 10), state=part)
    assert part.seen == list(range(10))
    return part.fields[0].tobytes()
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_both_cores_give_the_same_bits(program: Any, workers: int) -> None:
    made = program(RING)
    found = [
        mate.run(
            made.main,
            mate.Config(
                core=core, workers=workers, ranks_per_process=5, in_process=True, affinity="none"
            ),
        ).results
        for core in ("python", "native")
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == 5


KEPT = """
class Part:
    pass

part = Part()
part.sent, part.received = np.ones(1), np.zeros(1)

@graph.region(compiled=True)
def send(part, i):
    part.ctx.isend(part.sent, 0)
    part.ctx.irecv(part.received, 0)

async def main(ctx):
    part.ctx = getattr(part, "ctx", ctx) if KEEP else ctx
    part.sent[0] += 1
    await ctx.execute(graph, state=part)
    return part.received[0]
"""


@pytest.mark.parametrize("keep", [False, True])
def test_a_state_may_be_used_in_several_jobs(program: Any, keep: bool) -> None:
    """A later job has other records; a context kept from an earlier one means the same rank."""
    made = program(KEPT.replace("KEEP", str(keep)))
    results = [mate.run(made.main, mate.Config(core="native")).results for _ in range(3)]
    assert results == [[2], [3], [4]]


ANEW = """
class Part:
    pass

@graph.region(compiled=True)
def count(part, i):
    part.a[0] += part.n

@graph.region(depends=["count"])
def change(part, i):
    part.n += CHANGE

async def main(ctx):
    part = Part()
    part.a, part.n = np.zeros(1), 1
    await ctx.execute(graph, 3, state=part)
    part.n = 10
    await ctx.execute(graph, 3, state=part)
    return part.a[0]
"""


def test_a_change_while_the_graph_runs_ends_the_job(program: Any) -> None:
    config = mate.Config(core="native")
    assert mate.run(program(ANEW.replace("CHANGE", "0")).main, config).results == [33]
    made = program(ANEW.replace("CHANGE", "1"))
    with refused(mate.MateError, "mate.compiled_run"):
        mate.run(made.main, config)


def test_what_cannot_be_compiled_ends_the_job_before_a_region_runs(program: Any) -> None:
    made = program("""
ran = []

@graph.region()
def first(part, i):
    ran.append(i)

@graph.region(compiled=True)
def second(part, i):
    part.ctx.isend([1], 0)

async def main(ctx):
    await ctx.execute(graph)
""")
    with refused(mate.GraphError, "mate.not_compilable"):
        mate.run(made.main, mate.Config(core="native"))
    assert not made.ran


def test_more_than_63_compiled_regions(program: Any) -> None:
    made = program("""
def step(part, i):
    part.a[0] = (3 * part.a[0] + part.a[1] + i) % 1000003
    part.a[1] += 1

for n in range(65):
    graph.region(f"r{n}", [f"r{n - 1}" if n else "r64*"], compiled=True)(step)

class Part:
    pass

async def main(ctx):
    part = Part()
    part.a = np.zeros(2, int)
    await ctx.execute(graph, 3, state=part)
    return part.a.tolist()
""")
    native, python = (
        mate.run(made.main, mate.Config(core=core)).results[0] for core in ("native", "python")
    )
    assert native == python
    assert native[1] == 195
