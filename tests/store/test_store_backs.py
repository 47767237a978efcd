"""What was read back comes out as it went in, however the database puts it together."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from autotune.store import Store
from runner.types import ReadBack, RunRecord
from tests.contract.store_samples import key

AWKWARD = {
    "z:last": ReadBack("in force", "3:abc", "", None),
    "a": ReadBack("inactive", "", None, "12:"),
    "é": ReadBack("in force", "größer\n\"'", "\udcff\0", "😀"),
}
PLAIN = {"a": ReadBack("in force", "1", "1", "command")}


def test_text_order_and_nothing_are_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        study, other = store.study(key()), store.study(key(seed=2))
        for backs in (AWKWARD, {}, PLAIN, AWKWARD):
            store.add_run(
                study.id, None, "search", 0, 0, RunRecord("ok", wall_s=1.0, read_back=backs)
            )
        store.add_run(
            other.id, None, "search", 0, 0, RunRecord("ok", wall_s=1.0, read_back=AWKWARD)
        )
        found = [run.record.read_back for run in store.runs(study.id)]
        [columns] = store.run_columns(study.id)
    cleaned = AWKWARD | {"é": ReadBack("in force", "größer\n\"'", "\\udcff\\x00", "😀")}
    assert found == [cleaned, {}, PLAIN, cleaned]
    assert list(found[0]) == list(AWKWARD)
    as_json = {name: dataclasses.asdict(back) for name, back in cleaned.items()}
    assert [json.loads(text) for text in columns["read_back"]] == [
        as_json,
        {},
        {"a": dataclasses.asdict(PLAIN["a"])},
        as_json,
    ]
    # One run's may be changed without another's.
    found[0].clear()
    assert found[3] == cleaned


def test_a_folder_made_for_a_database_is_closed_to_others(tmp_path: Path) -> None:
    place = tmp_path / "new" / "folder" / "r.db"
    before = os.umask(0)
    try:
        Store.open(place).close()
    finally:
        os.umask(before)
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert place.stat().st_mode & 0o777 == 0o600
