"""Which study of a command is that of its executables as they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.measurement.study_executables import (
    changed_executables,
    current_key,
    store_executables,
    stored_executables,
)
from autotune.measurement.study_key import require_same_study
from autotune.notes import Note
from autotune.space import Parameter, Setting, Space
from autotune.store import Store, StudyKey
from autotune.study.trial_store import StoredTrials
from autotune.targets.executables import ExecutableFile
from runner.types import RunRecord
from tests.contract.store_samples import key, ok


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "r.db") as opened:
        yield opened


@pytest.fixture
def program(tmp_path: Path) -> Path:
    place = tmp_path / "solver"
    place.write_bytes(b"one")
    return place


def file_of(path: Path) -> ExecutableFile:
    return ExecutableFile(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def measured(store: Store, wanted: StudyKey, *paths: Path) -> int:
    """Begin or continue a study and run these files in it; returns its number."""
    study = store.study(current_key(store, wanted))
    assert store_executables(store, study.id, [file_of(path) for path in paths]) == []
    return study.id


def test_a_study_goes_on_while_its_executables_stay(store: Store, program: Path) -> None:
    first = measured(store, key(), program)
    program.unlink()
    program.write_bytes(b"one")
    assert measured(store, key(), program) == first
    assert [file.path for file in stored_executables(store, first)] == [str(program)]


def test_a_study_without_known_executables_goes_on(store: Store, program: Path) -> None:
    first = store.study(key()).id
    assert measured(store, key(), program) == first


def test_a_rebuilt_program_begins_a_study_and_says_so(store: Store, program: Path) -> None:
    first = store.get_study(measured(store, key(), program))
    program.write_bytes(b"two")
    notes: list[Any] = []
    found = current_key(store, key(), notes.append)
    (note,) = notes
    assert isinstance(note, Note)
    assert note.code == "study.program_changed"
    assert note.data["study"] == first.hash[:12]
    assert [row["path"] for row in note.data["files"]] == [str(program)]
    assert found.hash != first.hash
    # Runs of both are of one context; the stored executables say which of them are current.
    assert found.context == first.context
    second = measured(store, key(), program)
    assert second != first.id
    notes.clear()
    assert measured(store, key(), program) == second
    assert notes == []


def test_a_removed_program_is_another_one(store: Store, program: Path) -> None:
    first = store.get_study(measured(store, key(), program))
    program.unlink()
    assert current_key(store, key()).hash != first.hash


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8), st.data())
def test_one_study_for_each_state(
    tmp_path_factory: pytest.TempPathFactory, states: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Whatever the order of the builds: a state has one study, and a study has one state."""
    place = tmp_path_factory.mktemp("states")
    program, library = place / "program", place / "library.so"
    seen: dict[tuple[int, int], int] = {}
    with Store.open(place / "r.db") as store:
        for state in states:
            program.write_bytes(b"p%d" % state[0])
            library.write_bytes(b"l%d" % state[1])
            number = measured(store, key(), program, library)
            assert changed_executables(store, number) == []
            assert seen.setdefault(state, number) == number
    assert len(set(seen.values())) == len(seen)


def test_a_file_that_is_seen_late_counts_as_well(store: Store, program: Path) -> None:
    """A study begun after a change finds another change in a file that the first one never ran."""
    other = program.with_name("plugin.so")
    other.write_bytes(b"one")
    first = measured(store, key(), program)
    program.write_bytes(b"two")
    second = measured(store, key(), program, other)
    other.write_bytes(b"two")
    third = measured(store, key(), program, other)
    assert len({first, second, third}) == 3
    program.write_bytes(b"one")
    assert measured(store, key()) == first


def test_another_content_in_one_study_is_told_and_not_stored(store: Store, program: Path) -> None:
    study = measured(store, key(), program)
    before = stored_executables(store, study)
    program.write_bytes(b"two")
    (change,) = store_executables(store, study, [file_of(program)])
    assert change.path == str(program)
    assert stored_executables(store, study) == before


def test_copies_for_each_run_are_one_program(store: Store, program: Path) -> None:
    """A wrapper that runs a copy, and removes it: the content counts."""
    digest = file_of(program).sha256
    copies = [ExecutableFile(f"/scratch/{n}/solver", digest, place="removed") for n in range(3)]
    study = store.study(current_key(store, key()))
    assert store_executables(store, study.id, copies[:2]) == []  # Two ranks of one run.
    assert store_executables(store, study.id, copies[2:]) == []
    assert stored_executables(store, study.id) == copies[:1]
    notes: list[Any] = []
    assert current_key(store, key(), notes.append).hash == study.hash
    assert [(note.code, note.data) for note in notes] == [
        ("study.program_unchecked", {"files": [copies[0].path]})
    ]


def test_a_run_shows_what_the_files_do_not(store: Store) -> None:
    """The copy of a rebuilt program: the study ends, and the command does not stay at its end."""
    old = ExecutableFile("/scratch/solver", "ab" * 32, place="removed")
    new = ExecutableFile("/scratch/solver", "cd" * 32, place="removed")
    study = store.study(current_key(store, key()))
    assert store_executables(store, study.id, [old]) == []
    (change,) = store_executables(store, study.id, [new])
    assert (change.sha256, change.now_sha256) == (old.sha256, new.sha256)
    later = store.study(current_key(store, key()))
    assert later.id != study.id
    assert store_executables(store, later.id, [new]) == []
    assert current_key(store, key()).hash == later.hash


def test_a_worker_does_not_mix_two_programs(store: Store, program: Path) -> None:
    begun = store.get_study(measured(store, key(), program))
    store.add_trial(begun.id, {"a": 1}, "a=1")
    program.write_bytes(b"two")
    own = store.study(current_key(store, key()))
    with pytest.raises(UsageError) as problem:
        require_same_study(store, begun, own)
    assert problem.value.code == "study.program_changed"


def test_runs_of_another_program_are_not_taken_over(store: Store, program: Path) -> None:
    space = Space("small", (Parameter(name="a", levels=(1, 2), target="mca"),))
    setting = Setting({"a": 1})
    launched = space.launched(setting)

    def run(study: int, phase: str, setting_key: str, record: RunRecord) -> None:
        store.add_run(study, None, phase, 0, 0, record, setting_key=setting_key, launched=launched)

    other = measured(store, key(seed=2), program)
    run(other, "default", "default", ok(2.0))
    run(other, "default", "default", ok(2.0))
    run(other, "search", setting.key, ok(1.0))
    study = store.study(key())
    assert StoredTrials(store, study, space).known_ratio(setting) is not None
    program.write_bytes(b"two")
    assert StoredTrials(store, study, space).known_ratio(setting) is None
