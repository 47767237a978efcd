"""The comparison of the programming models: what it names is there, and settings can be drawn."""

from __future__ import annotations

import pytest

from autotune.config.app import load_app
from autotune.space import DEFAULT, load_space
from benchmarks.models import MODELS, code_of, drawn
from runner.programs.apps.jacobi3d.options import VARIANTS as JACOBI
from runner.programs.apps.minighost.options import VARIANTS as GHOST


def test_both_programs_have_the_same_models() -> None:
    names = {program: [m.name for m in models] for program, (_, models) in MODELS.items()}
    assert names["jacobi3d"] == names["minighost"]
    assert len(names["minighost"]) == 6
    # The processes of cab share a node, so it is no model for several.
    assert {m.variant for m in MODELS["minighost"][1]} == set(GHOST) - {"cab"}
    assert {m.variant for m in MODELS["jacobi3d"][1]} < set(JACOBI)


@pytest.mark.parametrize("program", MODELS)
def test_each_model_has_settings_and_code(program: str) -> None:
    chosen, models = MODELS[program]
    app = load_app(program)
    facts = {"ranks": 2, "cores": 2, "nodes": 1}
    for model in models:
        space = load_space(app.space(model.space), None, facts, app.inputs[chosen].facts)
        found = drawn(space, model.variant, 6, 1, (DEFAULT,))
        kinds = {setting.get("variant", "mpi") for setting in found}
        assert kinds == {model.variant}
        # No space has Jacobi3D's threads.
        assert len(found) > 1 or (program, model.variant) == ("jacobi3d", "threads")
        lines, complexity = code_of(model.files)
        assert lines > complexity > 5
