"""The effect of a parameter in the studies of a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.parameters.measured import level_ratios, measured_effect
from autotune.space import Setting
from autotune.store import BestRuns, Store
from tests.contract.store_samples import key, ok


def test_a_level_has_the_median_ratio_of_the_settings_with_it() -> None:
    runs = [
        BestRuns("default", 2.0, 5),
        *(BestRuns(Setting(values).key, seconds, 3) for values, seconds in (
            ({"eager": 4096}, 1.0), ({"eager": 4096, "other": 1}, 1.4), ({"eager": 512}, 3.0),
            ({"other": 1}, 0.1),
        )),
    ]  # fmt: skip
    levels = level_ratios(runs, {"eager"})
    assert [(one.value, one.settings) for one in levels] == [("4096", 2), ("512", 1)]
    assert [one.ratio for one in levels] == pytest.approx([0.6, 1.5])
    assert not level_ratios(runs[1:], {"eager"})
    assert not level_ratios(runs, {"unknown"})


def test_only_studies_that_tried_the_parameter_count(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        for seed, name in enumerate(("eager", "eager", "other")):
            study = store.study(key(seed=seed))
            setting = Setting({name: 7})
            trial = store.add_trial(study.id, setting.to_json(), setting.key)
            store.add_run(study.id, trial.id, "search", 0, 0, ok(0.5), setting_key=setting.key)
            if seed:
                store.add_run(study.id, None, "default", 0, 0, ok(1.0))
        shown = measured_effect(store, {"eager"})
        assert (shown.studies, shown.recommended, len(shown.effects)) == (2, 0, 1)
        assert shown.best is not None
        assert (shown.best.study, shown.best.best.value) == (2, "7")
        assert shown.best.best.ratio == pytest.approx(0.5)
        assert measured_effect(store, {"never"}).best is None
