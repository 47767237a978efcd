"""No test outside a snapshot compares output with a phrase: it asserts codes and data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PHRASE = re.compile(r"[A-Za-z]{2,}[ ,;:]+\(?[a-z]{2,}")
"""Two words or more."""
DATA = "# data"
"""Ends the line of a literal that is data: a program's own output, a name, an input."""
PENDING = {
    "anova/test_classwide.py",
    "anova/test_cli.py",
    "anova/test_evidence.py",
    "anova/test_factors.py",
    "anova/test_proof.py",
    "anova/test_table.py",
    "api/test_entry_points.py",
    "apps/test_flowcart.py",
    "apps/test_jacobi3d_mpi.py",
    "apps/test_jacobi3d_numerics.py",
    "apps/test_jacobi3d_variants.py",
    "apps/test_minighost.py",
    "apps/test_minighost_cab.py",
    "apps/test_minighost_models.py",
    "apps/test_minighost_mpi.py",
    "apps/test_minighost_tpod.py",
    "apps/test_pattern.py",
    "benchmarks/test_contestants.py",
    "benchmarks/test_family_table.py",
    "benchmarks/test_metg.py",
    "benchmarks/test_output_checks.py",
    "benchmarks/test_superlu_dist.py",
    "calibration/test_real.py",
    "calibration/test_response.py",
    "cases/test_cases.py",
    "chaos/test_tuner.py",
    "cli/test_bad_input.py",
    "cli/test_budget.py",
    "cli/test_commands.py",
    "cli/test_disjoint_cpus.py",
    "cli/test_failure_words.py",
    "cli/test_fidelity.py",
    "cli/test_figures.py",
    "cli/test_follow_up.py",
    "cli/test_hangup.py",
    "cli/test_interrupts.py",
    "cli/test_jobs.py",
    "cli/test_launcher_line.py",
    "cli/test_libraries.py",
    "cli/test_live_view.py",
    "cli/test_next_step.py",
    "cli/test_one_sided.py",
    "cli/test_other_commands.py",
    "cli/test_outcome.py",
    "cli/test_placement.py",
    "cli/test_places.py",
    "cli/test_profile_table.py",
    "cli/test_range.py",
    "cli/test_render.py",
    "cli/test_report.py",
    "cli/test_schemas.py",
    "cli/test_search.py",
    "cli/test_search_libraries.py",
    "cli/test_settings.py",
    "cli/test_standard_input.py",
    "cli/test_status.py",
    "cli/test_threads.py",
    "cli/test_trust.py",
    "cli/test_unguarded.py",
    "cli/test_unused.py",
    "cli/test_workers.py",
    "collectives/test_multi_object.py",
    "collectives/test_proof.py",
    "collectives/test_real.py",
    "contract/store.py",
    "datasets/test_catalog.py",
    "datasets/test_commands.py",
    "datasets/test_dataset.py",
    "datasets/test_exchange.py",
    "datasets/test_import.py",
    "docs/test_site.py",
    "examples/test_examples.py",
    "fuzz/test_endless.py",
    "intranode/daps/test_mpi.py",
    "intranode/daps/test_size.py",
    "intranode/mcoll/test_config.py",
    "intranode/mcoll/test_mpi.py",
    "intranode/mcoll/test_size.py",
    "intranode/programs.py",
    "intranode/test_config.py",
    "intranode/test_mpi.py",
    "intranode/test_size.py",
    "mate/compiled/test_c_functions.py",
    "mate/compiled/test_names.py",
    "mate/compiled/test_optional.py",
    "mate/compiled/test_state.py",
    "mate/test_mpi.py",
    "mate/test_schedule.py",
    "mate/test_serialized.py",
    "mate/test_solo.py",
    "mate/test_start.py",
    "mate/test_steal.py",
    "mate/translate/test_command.py",
    "mate/translate/test_compiled.py",
    "mate/translate/test_running.py",
    "mate/translate/test_translate.py",
    "nas/test_bt_lu_ft_runs.py",
    "nas/test_run.py",
    "native/test_elf.py",
    "native/test_kernels.py",
    "native/test_openmp.py",
    "native/test_transcription.py",
    "prediction/test_calibrated_dataset.py",
    "prediction/test_cli.py",
    "prediction/test_shipped.py",
    "prediction/test_stored_trace.py",
    "publish/test_again.py",
    "publish/test_commands.py",
    "publish/test_cron.py",
    "publish/test_evidence.py",
    "publish/test_expiry.py",
    "publish/test_impi.py",
    "publish/test_install.py",
    "publish/test_mpich.py",
    "publish/test_neutral.py",
    "publish/test_obeyed.py",
    "publish/test_own_table.py",
    "publish/test_recheck.py",
    "publish/test_trust.py",
    "publish/test_tune_file.py",
    "publish/test_verify.py",
    "publish/test_version_check.py",
    "report/test_figures.py",
    "report/test_page.py",
    "runner/test_abi.py",
    "runner/test_cpus.py",
    "runner/test_discover.py",
    "runner/test_failure_message.py",
    "runner/test_files.py",
    "runner/test_fresh_copy.py",
    "runner/test_guard.py",
    "runner/test_intel.py",
    "runner/test_launch_again.py",
    "runner/test_launch_cpus.py",
    "runner/test_line_set.py",
    "runner/test_openmpi.py",
    "runner/test_openmpi_collectives.py",
    "runner/test_openmpi_parameters.py",
    "runner/test_openmpi_rules.py",
    "runner/test_openmpi_ucx.py",
    "runner/test_private_files.py",
    "runner/test_supervise.py",
    "runner/test_threads.py",
    "runner/test_trusted_path.py",
    "runner/test_variables.py",
    "space/test_check.py",
    "space/test_collectives.py",
    "space/test_config_find.py",
    "space/test_definition.py",
    "space/test_derived.py",
    "space/test_library_choice.py",
    "space/test_load.py",
    "space/test_mate_space.py",
    "space/test_space.py",
    "stats/test_blocks.py",
    "stats/test_comparison.py",
    "stats/test_error_budget.py",
    "stats/test_estimate.py",
    "stats/test_resolve_words.py",
    "stats/test_slow_launches.py",
    "store/test_store_export.py",
    "store/test_store_location.py",
    "store/test_store_migrate.py",
    "store/test_store_snapshot.py",
    "study/test_comparison.py",
    "study/test_first_run.py",
    "study/test_hybrid_space.py",
    "study/test_mate_space.py",
    "study/test_recommendation.py",
    "study/test_rejections.py",
    "study/test_screening.py",
    "study/test_selection.py",
    "study/test_setting_syntax.py",
    "study/test_tried_layouts.py",
    "study/test_unchecked.py",
    "targets/test_jobs.py",
    "targets/test_launcher_line.py",
    "targets/test_launcher_options.py",
    "targets/test_metric.py",
    "targets/test_provenance.py",
    "targets/test_room.py",
    "targets/test_wrapped_launcher.py",
    "tarragon/test_alone.py",
    "test_extras.py",
    "test_mpi_environments.py",
    "test_nightly.py",
    "testbed/test_cluster.py",
    "testbed/test_collectives.py",
    "testbed/test_lifecycle.py",
    "testbed/test_search.py",
    "trace/test_errors.py",
    "ui/test_access.py",
    "ui/test_browser.py",
    "ui/test_command.py",
    "ui/test_publications.py",
    "ui/test_studies.py",
    "ui/test_study.py",
    "witness/published.py",
    "witness/test_witness.py",
}
"""Files that still compare phrases."""


def phrases(path: Path) -> list[str]:
    """``line: phrase`` of each literal of several words that is compared, or matched."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    compared = {id(node): node for node in literals(tree)}
    inputs = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in compared
    }
    return [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in compared.values()
        if PHRASE.search(node.value)
        and not any(node.value in given for given in inputs)
        and not lines[node.end_lineno - 1].endswith(DATA)
    ]


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts in comparisons, and those of ``match=``."""
    for node in ast.walk(tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            sides = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        for side in sides:
            if isinstance(side, ast.List | ast.Tuple | ast.Set):
                sides += side.elts
            if isinstance(side, ast.Constant | ast.JoinedStr | ast.BinOp):
                for inner in ast.walk(side):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        yield inner


FILES = sorted(path for path in HERE.rglob("*.py") if path != Path(__file__))


def test_phrases_stand_in_snapshots() -> None:
    listed = {str(p.relative_to(HERE)): phrases(p) for p in FILES}
    assert [one for name, each in listed.items() if name not in PENDING for one in each] == []
    assert {name for name in PENDING if not listed.get(name)} == set()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert 'no such file' in err", 1),
        ("with raises(X, match='is not a number'):\n    pass", 1),
        ("assert code == 'metric.cut'", 0),
        ("text = 'my own input'\nassert read(text) == 'my own input'", 0),
        ("assert cpu == 'Intel Xeon'", 0),
        ("assert printed == 'hello you'  # data", 0),
    ],
)
def test_what_counts_as_a_phrase(source: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(source)
    assert len(phrases(file)) == count
