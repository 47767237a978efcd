"""A search begins with another study's answer, also with that of another MPI library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.api.search import start_hint, start_settings
from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import Parameter, Setting, Space
from autotune.store import AppInfo, MpiInfo, Store
from autotune.targets.target import Target
from runner.mpi.library import Library
from tests.publish.conftest import MakeStudy
from tests.refusals import refused

CELLS = "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE"
SPACE = Space(
    "mpich", (Parameter(CELLS, (4096, 8192)), Parameter("bind_to", ("core",), "placement"))
)
MPICH = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpirun")


def target(*words: str, ranks: int = 2) -> Target:
    return Target.of(app_from_command(words, None, None), None, ranks, load_cluster("local"), MPICH)


@pytest.fixture
def opened(store: Path) -> Store:
    return Store.open(store)


def test_another_librarys_answer_is_written_in_this_ones_words(
    make_study: MakeStudy, opened: Store
) -> None:
    proven = {"mca": {"btl_sm_eager_limit": "8192", "btl_sm_fbox_max": "4"}}
    said: list[Note] = []
    found = start_settings([make_study(proven)], SPACE, target("/bin/true"), opened, said.append)
    assert found == [Setting({CELLS: 8192})]
    assert said[0].data["left_out"] == ["btl_sm_fbox_max"]


def test_its_own_answer_and_typed_settings_stay(make_study: MakeStudy, opened: Store) -> None:
    own = make_study({"mca": {CELLS: "4096"}}, mpi=MpiInfo("mpich", "5.0.2"))
    texts = [own, "bind_to=core", f"{CELLS}=4096", "default"]
    found = start_settings(texts, SPACE, target("/bin/true"), opened, lambda words: None)
    assert [setting.key for setting in found] == [f"{CELLS}=4096", "bind_to=core"]


@pytest.mark.parametrize("text", ["bind_to=numa", f"{CELLS}=5000"])
def test_what_the_space_does_not_allow_is_refused(opened: Store, text: str) -> None:
    with refused(UsageError, "setting.not_in_space") as caught:
        start_settings([text], SPACE, target("/bin/true"), opened, lambda words: None)
    assert text in str(caught.value)


def test_a_study_without_an_answer_is_refused(make_study: MakeStudy, opened: Store) -> None:
    study = make_study({}, {"recommended": {"setting": {}}})
    with refused(UsageError, "study.no_recommendation"):
        start_settings([study], SPACE, target("/bin/true"), opened, lambda words: None)


def test_a_study_of_the_same_program_is_offered(
    make_study: MakeStudy, opened: Store, tmp_path: Path
) -> None:
    """The builds of a program differ in folder and suffix; its arguments do not."""
    program = tmp_path / "flow.mpich"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here = (str(program), "-n", "4")
    argv = ("/opt/a/flow.openmpi", "-n", "4")
    study = make_study(app=AppInfo("flow", "binary", "cd" * 32, argv, None, None, None))
    hint = start_hint(target(*here), opened)
    assert hint is not None
    assert f"--start {study}" in hint.words
    assert start_hint(target(*here[:2], "8"), opened) is None
    assert start_hint(target(*here, ranks=4), opened) is None
    other = replace(target(*here), library=replace(MPICH, family="openmpi", version="5.0.11"))
    assert start_hint(other, opened) is None
