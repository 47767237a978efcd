"""The comparison of outputs: what stops a setting, and what does not."""

from __future__ import annotations

from dataclasses import replace

from autotune.measurement.output_check import LEAST_RUNS, compare_outputs
from autotune.measurement.printed_lines import printed_line
from autotune.measurement.run_history import CONFIRM, WARMUP, HistoryEntry, RunHistory
from autotune.space import DEFAULT, Setting
from autotune.study.objections import findings_on
from runner.supervise.line_set import LineSet
from runner.types import RunRecord
from tests.case_table import case_table

OUTPUT_DIFFERS = "result.output_differs"
RING = Setting({"coll_tuned_allreduce_algorithm": "ring"})
EAGER = Setting({"btl_sm_eager_limit": 65536})
"""Of another kind: it is right for operations that do not commute."""


def run(
    *lines: str, verified: bool | None = None, ranks: int = 4, metric_s: float | None = None
) -> RunRecord:
    found = LineSet()
    found.add("\n".join(lines).encode())
    return RunRecord(
        "ok",
        wall_s=1.0,
        metric_s=metric_s,
        world_size=ranks,
        verified=verified,
        mpi_name="openmpi",
        mpi_version="5.0.11",
        printed=found.printed_lines(),
    )


def differing(before: list[str], after: list[str], setting: Setting = RING) -> list[str]:
    found = compare_outputs([run(*before)] * 3, [run(*after)] * 3, setting)
    assert found.is_conclusive
    return [line.reference for line in found.differing]


def test_wrong_results_are_seen_beside_times() -> None:
    before = [run("wrong products: 0", "result RIGHT", f"Elapsed: 0.{n}1 s") for n in range(4)]
    after = [run("wrong products: 26688", "result WRONG", f"Elapsed: 0.{n}2 s") for n in range(4)]
    found = compare_outputs(before, after, RING)
    assert [(line.reference, line.setting) for line in found.differing] == [
        ("wrong products: 0", "wrong products: 26688"),
        ("result RIGHT", "result WRONG"),
    ]
    assert found.figures["differing"] == 2
    assert compare_outputs(before, before, RING).differing == ()


@case_table(
    ("one", "other"),
    [
        ("energy -1.23456789e+02", "energy -123.4567891"),
        ("energy -1.5", "energy -1.5000001"),
        ("count 1", "count 1.00000001"),
        ("defect 3.2e-16", "defect 1.7e-15"),
        ("residual 4.01e-10", "residual 4.13e-10"),
        ("||Ax-b||_oo/(eps*(||A||_oo)) = 0.0042", "||Ax-b||_oo/(eps*(||A||_oo)) = 0.0051"),
        ("total 1.2345D+03", "total 1234.5"),
        ("sum 1.23456", "sum 1.23457"),
        ("Total time: 2 min 3 s", "Total time: 58 s"),
        ("done in 2 s", "done in 1 s"),
        ("Time: 0.5", "Time: 0.4"),
        ("total_time_s = 3", "total_time_s = 2"),
        ("wall clock 0:00:02", "wall clock 0:00:01"),
        ("12.5 Mflop/s", "18.5 Mflop/s"),
        ("Performance: 100 steps", "Performance: 200 steps"),
        ("loop of 0.5 s on 4 procs for 100 steps", "loop of 0.4 s on 4 procs for 100 steps"),
        ("finished Nov 26 2026", "finished Nov 27 2026"),
        ("bound to core 0", "bound to core 1"),
        ("seconds, mean: compute 0.0001, mpi 0.0", "seconds, mean: compute 0.0, mpi 0.1"),
        ("CPU 100 0.00 PASSED 6.154", "CPU 100 0.00 PASSED 11.429"),
        ("number of ping pong pairs = 200", "number of ping pong pairs = 100"),
        ("a   b", "a b"),
    ],
)
def test_the_same_result_is_printed_in_many_ways(one: str, other: str) -> None:
    assert differing([one], [other]) == []
    assert differing([other], [one]) == []


@case_table(
    ("one", "other"),
    [
        ("energy -1.2345678", "energy -1.2346678"),
        ("sum 1.5", "sum 1.6"),
        ("iterations 57", "iterations 58"),
        ("iterations 1000000", "iterations 1000001"),
        ("checksum 0a17 ok", "checksum 0a18 ok"),
        ("residual 4.0e-10", "residual 1.0e-3"),
        ("converged", "NOT converged"),
        ("value 1.0", "value nan"),
        ("result RIGHT after 2 s", "result WRONG after 2 s"),
        ("time = 1.5 energy = -3.25", "time = 1.5 energy = -3.5"),
        ("time step 0.005 energy 2.25", "time step 0.005 energy 2.5"),
        ("velocity 3.25 m/s", "velocity 4.25 m/s"),
    ],
)
def test_another_result_is_seen(one: str, other: str) -> None:
    assert differing([one], [other]) == [one]


def test_lines_are_a_set() -> None:
    assert differing(["rank a: 1", "rank b: 2", "rank a: 1"], ["rank b: 2", "rank a: 1"]) == []


def test_lines_that_vary_in_the_default_say_nothing() -> None:
    before = [run("a 1", f"seed {n}") for n in range(3)]
    found = compare_outputs(before, [run("a 1", "seed 99")] * 3, RING)
    assert (found.lines, found.differing) == (1, ())


def test_a_line_that_one_run_of_the_setting_has_does_not_differ() -> None:
    after = [run("sum 2"), run("sum 2"), run("sum 1")]
    assert compare_outputs([run("sum 1")] * 3, after, RING).differing == ()


def test_the_figure_of_the_metric_is_no_result() -> None:
    before = [run("answer 5.2", metric_s=5.2)] * 3
    found = compare_outputs(before, [run("answer 4.1", metric_s=4.1)] * 3, RING)
    assert found.differing == ()
    slow = replace(run("score 4", metric_s=1 / 4), metric_rate=True)
    fast = replace(run("score 5", metric_s=1 / 5), metric_rate=True)
    assert compare_outputs([slow] * 3, [fast] * 3, RING).differing == ()


def test_a_line_may_show_the_setting_itself() -> None:
    eager = Setting({"btl_sm_eager_limit": 65536})
    assert differing(["limit is 4096"], ["limit is 65536"], eager) == []
    assert differing(["limit is 4096"], ["limit is 65537"], eager) == ["limit is 4096"]
    assert differing(["btl_sm_eager_limit: 1"], ["btl_sm_eager_limit: 2"], eager) == []
    assert differing(["variant: mpi"], ["variant: overlap"], Setting({"kind": "overlap"})) == []
    # A small number is no sign of the setting.
    assert differing(["errors: 0"], ["errors: 4"], Setting({"level": 4})) == ["errors: 0"]


def test_other_ranks_change_numbers_but_not_words() -> None:
    before = [run("local cells 100", "2 ranks", "result RIGHT", ranks=2)] * 3
    after = [run("local cells 50", "4 ranks", "result WRONG", ranks=4)] * 3
    found = compare_outputs(before, after, Setting({"processes": 4}))
    assert [line.reference for line in found.differing] == ["result RIGHT"]
    assert [line.reference for line in found.layout_lines] == ["local cells 100"]


def test_another_library_prints_its_name_and_version() -> None:
    before = [run("built for MPI 3.1", "library 5.0.11", "result RIGHT")] * 3
    other = [run("built for MPI 4.0", "library 5.0.2", "result WRONG") for _ in range(3)]
    after = [replace(one, mpi_name="mpich", mpi_version="5.0.2") for one in other]
    found = compare_outputs(before, after, Setting({"mpi": "mpich-5.0.2"}))
    assert [line.reference for line in found.differing] == ["result RIGHT"]
    same = compare_outputs(before, other, RING)
    assert len(same.differing) == 3


def test_few_runs_or_an_unknown_output_compare_nothing() -> None:
    few = [run("sum 1")] * (LEAST_RUNS - 1)
    assert not compare_outputs(few, [run("sum 2")] * 3, RING).is_conclusive
    assert not compare_outputs([run("sum 1")] * 3, few, RING).is_conclusive
    unknown = [RunRecord("ok")] * 3
    assert not compare_outputs(unknown, [run("sum 2")] * 3, RING).is_conclusive
    failed = [RunRecord("failed", printed=run("sum 2").printed)] * 3
    assert not compare_outputs([run("sum 1")] * 3, failed, RING).is_conclusive


def test_long_kinds_of_lines_are_compared_as_far_as_they_are_known() -> None:
    def steps(last: int, energy: str = "1.25") -> RunRecord:
        return run(*(f"step {n} energy {energy}" for n in range(last)))

    # One more line at the end is no other result; another number at the same step is.
    assert compare_outputs([steps(500)] * 3, [steps(501)] * 3, RING).differing == ()
    assert compare_outputs([steps(500)] * 3, [steps(500, "1.26")] * 3, RING).differing
    keys = [run(*(f"key {n}" for n in range(500)))] * 3
    wrong = [run(*(f"key {n}" for n in (*range(499), 777)))] * 3
    assert compare_outputs(keys, keys, RING).differing == ()
    assert compare_outputs(keys, wrong, RING).differing


def history(before: RunRecord, after: RunRecord) -> RunHistory:
    found = RunHistory()
    found.add(HistoryEntry(0, "default", WARMUP, run("compiling")))
    for n in range(4):
        for key, record in (("default", before), (EAGER.key, after)):
            found.add(HistoryEntry(found.next_order, key, CONFIRM, record, block=n))
    return found


def test_the_check_stops_unless_the_result_is_verified() -> None:
    (found,) = findings_on(history(run("result RIGHT"), run("result WRONG")), EAGER)
    assert (found.note.code, found.stops) == (OUTPUT_DIFFERS, True)
    assert found.note.data["shown"] == [{"reference": "result RIGHT", "setting": "result WRONG"}]
    assert found.note.data["runs"] == [4, 4]
    seen = history(run("result RIGHT", verified=True), run("result WRONG", verified=True))
    (found,) = findings_on(seen, EAGER)
    assert (found.note.code, found.stops) == (OUTPUT_DIFFERS, False)
    assert found.note.data["explained_by"] == "verified"
    assert findings_on(history(run("sum 1"), run("sum 1")), EAGER) == ()


def test_the_default_is_never_stopped() -> None:
    (found,) = findings_on(history(run("sum 1"), run("sum 2")), DEFAULT, EAGER)
    assert not found.stops


def test_shown_lines_are_few_and_short() -> None:
    before = [f"result {'x' * n} {'y' * 500}" for n in range(20)]
    data = compare_outputs([run(*before)] * 3, [run("none")] * 3, RING).figures
    assert data["differing"] == 20
    assert len(data["shown"]) <= 5
    assert all(len(line["reference"]) <= 200 for line in data["shown"])


def test_numbers_in_words_are_words() -> None:
    assert printed_line("x86_64 and 2x2").words.startswith("x86_64 and")
    assert [n.text for n in printed_line("a=1, b=-2.5e3 (c:.5)").numbers] == ["1", "-2.5e3", ".5"]


def test_the_times_of_a_table_do_not_count_in_any_of_its_rows() -> None:
    def table(*times: str) -> RunRecord:
        rows = (f"{n} P_Mix/Diag. 0.4000 {t} 0.4001{n}852" for n, t in enumerate(times, 2))
        return run(*rows)

    before = [table("0.1234", "0.1111"), table("0.1234", "0.1112"), table("0.1234", "0.1113")]
    after = [table("0.0999", "0.0888")] * 3
    assert compare_outputs(before, after, RING).differing == ()
    steady = [table("0.1234", "0.1111")] * 3
    assert len(compare_outputs(steady, after, RING).differing) == 2
    wrong = [run("2 P_Mix/Diag. 0.4000 0.1234 0.50012852")] * 3
    assert len(compare_outputs(before, wrong, RING).differing) == 1


def test_coarse_figures_of_a_table_do_not_count_and_others_do() -> None:
    assert differing(["2 Diag. 0.40E+00 0.1 0.40019852"], ["2 Diag. 0.40E+00 0.2 0.40019852"]) == []
    assert differing(["2 Diag. 0.40E+00 0.1 0.40019852"], ["2 Diag. 0.40E+00 0.1 0.40119852"])
    assert differing(["sum 0.1"], ["sum 0.2"]) == ["sum 0.1"]


def test_a_row_of_a_profile_may_be_missing() -> None:
    row = " calculate_rho_core                   1  5.0    0.000    0.000    0.007    0.007"
    other = " eigensolver                         11  6.0    0.000    0.000    0.012    0.012"
    assert differing([row], [other]) == []
    assert differing([row], [row.replace("  1  5.0", "  2  5.0")]) == [row]
    exact = row.replace("0.000    0.007", "0.1234    0.007")
    assert differing([exact], [other]) == [exact]
