"""Programs in, programs out: what becomes a coroutine, what becomes a region, what stays."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes.mate.translate import TranslationError, translate
from tests.refusals import refused

JACOBI = Path(__file__).parents[3] / "runner" / "programs" / "apps" / "jacobi3d" / "annotated.py"
START = '\nif __name__ == "__main__":\n    main()\n'


def program(text: str) -> str:
    return "from mpi4py import MPI\n\n" + textwrap.dedent(text) + START


def functions(text: str) -> dict[str, type]:
    return {
        node.name: type(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


RING = program(
    """
    def helper(x):   # odd   spacing survives
        return x+1


    class Ring:
        def __init__(self, comm):
            self.comm = comm

        def turn(self, data):
            self.comm.Send(data, 1)
            return helper(data)

        @staticmethod
        def plain():
            return "no message"


    def main():
        comm = MPI.COMM_WORLD
        ring = Ring(comm)
        first = ring.turn([1])[0]
        values = [ring.turn([i]) for i in range(3)]
        requests = [comm.Isend(v, 0) for v in values]
        MPI.Request.Waitall(requests)
        requests[0].Wait()
        print(first, ring.plain())
    """
)


def test_functions_on_the_way_to_a_blocking_call_become_coroutines() -> None:
    made = translate(RING, "ring.py")
    kinds = functions(made)
    for name in ("turn", "main", "_mate_main"):
        assert kinds[name] is ast.AsyncFunctionDef
    for name in ("helper", "__init__", "plain"):
        assert kinds[name] is ast.FunctionDef
    for line in (
        "await self.comm.Send(data, 1)",
        "first = (await ring.turn([1]))[0]",
        "values = [(await ring.turn([i])) for i in range(3)]",
        "requests = [comm.Isend(v, 0) for v in values]",
        "await mate.waitall(requests)",
        "await requests[0].Wait()",
        "comm = mate.COMM_WORLD",
        "def helper(x):   # odd   spacing survives\n    return x+1\n",
        "from runner.runtimes.mate import translated as mate",
        "mate.start(_mate_main)",
    ):
        assert line in made, line


GRAPH = program(
    """
    def main():
        comm = MPI.COMM_WORLD
        total, last = 0, None
        # pragma mate graph
        for i in range(2, 10, 2):
            # pragma mate region(compute) depends(pack*, unpack*, compute*@)
            step = i * i   # a comment stays
            total += step
            # pragma mate region ( receive ) depends (unpack*)
            requests = [comm.Irecv(bytearray(8), 0)]
            # pragma mate region(pack) depends(compute, send*)
            last = total
            # pragma mate region(send) depends(pack)
            comm.Isend(bytearray(8), 0)
            # pragma mate region(unpack) depends(compute, receive)
            MPI.Request.Waitall(requests)
            print(last)
        return total
    """
)


def test_regions_become_functions_that_share_what_they_must() -> None:
    made = translate(GRAPH, "graph.py")
    compile(made, "graph.py", "exec")
    kinds = functions(made)
    for name in ("compute", "receive", "pack", "send", "unpack"):
        assert kinds[f"_mate_{name}"] is ast.FunctionDef
    assert "a comment stays" in made
    assert "    requests = None\n" in made
    assert "nonlocal total\n" in made  # data
    assert "nonlocal last\n" in made  # data
    assert "nonlocal step" not in made  # data
    assert "Waitall" not in made
    run = made[made.index("await mate.run_graph(") :]
    assert [word.strip() for word in run.splitlines()[:4]] == [
        "await mate.run_graph(", "_mate_graph_1,", "range(2, 10, 2),", "_mate_compute,",
    ]  # fmt: skip


def test_the_dependencies_are_those_of_figure_4_6() -> None:
    """Martin 2018, Fig. 4.6; (2, 3) instead of the printed (2, 2), digest 4.7."""
    made = translate(GRAPH, "graph.py")
    place: dict[str, object] = {}
    text = made[made.index("_mate_graph_1 = ") : made.index("async def main")]
    from runner.runtimes.mate import translated

    exec(text, {"mate": translated}, place)
    table = place["_mate_graph_1"].table()  # type: ignore[attr-defined]
    assert table["own"] == [
        (0, 2, True), (0, 4, True), (1, 4, True), (2, 0, False), (2, 3, True), (3, 2, False),
        (4, 0, False), (4, 1, False),
    ]  # fmt: skip
    assert table["neighbors"] == [(0, 0, True)]


def test_a_region_that_waits_becomes_a_coroutine() -> None:
    made = translate(
        program(
            """
            def main():
                # pragma mate graph
                if True:
                    # pragma mate region(a)
                    MPI.COMM_WORLD.Barrier()
                    # pragma mate region(b) depends(a)
                    print("b")
            """
        )
    )
    kinds = functions(made)
    assert kinds["_mate_a"] is ast.AsyncFunctionDef
    assert kinds["_mate_b"] is ast.FunctionDef
    assert '("a", [], True)' in made
    assert "await mate.run_graph(_mate_graph_1, 1, _mate_a, _mate_b)" in made  # data


def test_the_shipped_example_translates() -> None:
    made = translate(JACOBI.read_text(), JACOBI.name)
    compile(made, "jacobi_mate.py", "exec")
    assert "import ordinary" not in made
    assert made.count("await ") >= 9
    # What has nothing to do with messages is the same text.
    for line in JACOBI.read_text().splitlines():
        if "layout" in line and "import" not in line:
            assert line in made


GRAPH_HEAD = "def main():\n    # pragma mate graph\n"
LOOP = GRAPH_HEAD + "    for i in range(2):\n"
REGION = LOOP + "        # pragma mate region(a)\n"
WAITS = "def f():\n    comm.Barrier()\n"
ERRORS = {
    "graph before nothing": (GRAPH_HEAD + "    x = 1\n", 5),
    "while": (GRAPH_HEAD + "    while True:\n        pass\n", 5),
    "accumulators": (GRAPH_HEAD + "    for a, b in x:\n        pass\n", 5),
    "irregular": (GRAPH_HEAD + "    for a in x:\n        pass\n", 5),
    "else": (REGION + "        pass\n    else:\n        pass\n", 5),
    "stray": (LOOP + "        x = i\n", 6),
    "twice": (REGION + "        x = i\n" + REGION[len(LOOP) :] + "        y = i\n", 9),
    "unknown": (REGION[:-1] + " depends(b)\n        x = i\n", 5),
    "cycle": (REGION[:-1] + " depends(a)\n        x = i\n", 5),
    "modifier": (REGION[:-1] + " depends(a**)\n        x = i\n", 6),
    "word": ("def main():\n    # pragma mate grahp\n    x = 1\n", 4),
    "alone": ("def main():\n    # pragma mate region(a)\n    x = 1\n", 5),
    "nested": (LOOP + "        # pragma mate graph\n        for j in x:\n            pass\n", 7),
    "induction variable": (REGION + "        i += 1\n", 7),
    "break": (REGION + "        if i: break\n", 7),
    "return": (REGION + "        return\n", 7),
    "unsupported": ("def main():\n    MPI.COMM_WORLD.Split(0)\n", 4),
    "test": ("def main():\n    r = f()\n    r.Test()\n", 5),
    "pickled": ("def main():\n    comm = MPI.COMM_WORLD\n    comm.bcast(1)\n", 5),
    "wildcard": ("def main():\n    MPI.COMM_WORLD.Recv(b, MPI.ANY_SOURCE)\n", 4),
    "lambda": ("def main():\n    f = lambda: MPI.COMM_WORLD.Barrier()\n", 4),
    "generator": ("def main():\n    all(comm.Barrier() for i in x)\n", 4),
    "dunder": ("class A:\n    def __enter__(self):\n        comm.Barrier()\n", 4),
    "decorator": ("@cache\n" + WAITS, 3),
    "callback": (WAITS + "\ndef main():\n    list(map(f, [1]))\n", 7),
    "yields": (WAITS + "    yield 1\n", 3),
    "container": (WAITS.replace("f()", "update()") + "\ndef main():\n    a.update()\n", 7),
    "at import": ("rank = MPI.COMM_WORLD.Get_rank()\n", 3),
    "rank at import": ("comm = MPI.COMM_WORLD\nrank = comm.rank\n", 4),
    "loop at import": ("for i in range(2):\n    MPI.COMM_WORLD.Barrier()\n", 4),
    "variable after the loop": (REGION + "        pass\n    print(i)\n", 8),
    "graph in a region": (
        REGION + "        if x:\n            # pragma mate graph\n"
        "            for j in range(2):\n                pass\n",
        9,
    ),
    "region at the end": (REGION + "        pass\n        # pragma mate region(b)\n", 8),
    "behind a statement": ("x = 1  # pragma mate graph\n", 3),
    "two directives": (LOOP[:-1] + "\n" + 2 * REGION[len(LOOP) :] + "        x = i\n", 7),
    "graph at import": (
        "# pragma mate graph\nfor i in range(2):\n    # pragma mate region(a)\n    x = i\n",
        4,
    ),
    "method as a value": ("def main():\n    f = MPI.COMM_WORLD.Barrier\n", 4),
    "another name": ("from mpi4py import MPI as M\n", 3),
    "inside": ("from mpi4py.MPI import COMM_WORLD\n", 3),
    "through the package": ("import mpi4py\nc = mpi4py.MPI.COMM_WORLD\n", 4),
    "runtime's names": ("import runner.runtimes.mate.ordinary\n", 3),
    "self": ("def main():\n    MPI.COMM_SELF.Barrier()\n", 4),
    "finalize": ("def main():\n    MPI.Finalize()\n", 4),
    "global": ("def main():\n    global x\n    x = 1\n", 4),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_is_an_error_with_its_line(name: str, snapshot: SnapshotAssertion) -> None:
    text, line = ERRORS[name]
    with pytest.raises(TranslationError) as caught:
        translate(f"from mpi4py import MPI\n\n{text}{START}", "app.py")
    assert caught.value.place == f"app.py:{line}"
    assert str(caught.value) == snapshot


STATE = """
    def main(*sizes):
        comm = MPI.COMM_WORLD
        early = comm.Irecv(bytearray(8), 0)
        keep = 1

        def step():
            nonlocal keep
            # the time loop
            # pragma mate graph
            for i in range(3):  # three of them
                # pragma mate region(first)
                sizes = 3
                keep += 1
                if i == 0:
                    count = 0
                count += 1
                total: float = count
                # pragma mate region(second) depends(first)
                import math
                for k in range(3):
                    print(k, math.pi, total)
                with open("file") as file:
                    print(file)
                # pragma mate region(third) depends(second)
                early.Wait()
                one = comm.Irecv(bytearray(8), 0)
                one.Wait()
                # the end

        step()
        return keep, math, k
"""


def test_names_and_waits_keep_their_meaning() -> None:
    """A region's value lives on to its next execution; what is no region's message is awaited."""
    made = translate(program(STATE.replace("return keep, math, k", "return keep")), "state.py")
    compile(made, "state.py", "exec")
    assert "nonlocal count, keep, total\n" in made  # data
    assert " total = count\n" in made
    assert "count = None\n" in made
    never = ("keep = None", "nonlocal math", "k = None", "nonlocal one", "file = None")
    for text in never:
        assert text not in made
    assert "await early.Wait()\n" in made  # data
    assert "await one.Wait()\n" in made  # data
    assert "async def _mate_third(i):" in made  # data
    for comment in ("# the time loop", "# three of them", "# the end"):
        assert made.count(comment) == 1


def test_a_graph_alone_makes_its_function_a_coroutine() -> None:
    text = program(LOOP + "        # pragma mate region(a)\n        x = i\n")
    kinds = functions(translate(text))
    assert kinds["main"] is ast.AsyncFunctionDef
    assert kinds["_mate_1_a"] is ast.FunctionDef


def test_the_name_of_the_runtime_is_the_programs() -> None:
    text = "def main():\n    api.local_barrier()\n    mate = MPI.COMM_WORLD\n    mate.Barrier()\n"
    made = translate("from runner.runtimes.mate import ordinary as api\n" + program(text))
    assert "from runner.runtimes.mate import translated as api\n" in made  # data
    body = made[made.index("def main(") :].splitlines()[1:]
    assert [line.strip() for line in body[:3]] == [
        "await api.local_barrier()",  # data
        "mate = api.COMM_WORLD",
        "await mate.Barrier()",  # data
    ]
    made = translate(
        '"""What it does."""\n' + program(text.replace("    api.local_barrier()\n", ""))
    )
    assert "from runner.runtimes.mate import translated as _mate\n" in made  # data
    assert "    mate = _mate.COMM_WORLD\n" in made
    assert ast.get_docstring(ast.parse(made)) == "What it does."


def test_what_the_starting_block_binds_stays_there() -> None:
    text = "from mpi4py import MPI\n\ndef main(n):\n    MPI.COMM_WORLD.Barrier()\n    return {}\n"
    start = '\nif __name__ == "__main__":\n    size = 3\n    main(size)\n'
    assert "    await main(size)\n" in translate(text.format("n") + start)  # data
    with refused(TranslationError, "mate.translation") as caught:
        translate(text.format("size") + start, "app.py")
    assert caught.value.place == "app.py:5"


def test_a_file_that_is_no_program() -> None:
    with refused(TranslationError, "mate.translation"):
        translate("def main(:\n", "app.py")
    with pytest.raises(TranslationError, match="__main__"):
        translate("def main():\n    pass\n", "app.py")


def test_names_of_other_modules_are_left_alone() -> None:
    text = "import threading\n" + program(
        "def main():\n    threading.Barrier(2).wait()\n    MPI.COMM_WORLD.Barrier()\n"
    )
    made = translate(text)
    assert "    threading.Barrier(2).wait()\n" in made
    assert "    await mate.COMM_WORLD.Barrier()\n" in made  # data
