"""The parser on trimmed real outputs of 4.1.8 and 5.0.11, on mutated text, and the real command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.mpi.library import Library, ParamInfo
from runner.mpi.openmpi.adapter import OpenMPI
from runner.mpi.openmpi.parameters import parse_ompi_info, read_parameters, system_folder
from runner.types import LaunchSpec
from tests.mpis import built, library_named
from tests.refusals import refused

DATA = Path(__file__).parent / "data"
OLD = (DATA / "ompi_info_4.1.8.txt").read_text()
NEW = (DATA / "ompi_info_5.0.11.txt").read_text()


@pytest.fixture(scope="module")
def old() -> dict[str, ParamInfo]:
    return parse_ompi_info(OLD)


@pytest.fixture(scope="module")
def new() -> dict[str, ParamInfo]:
    return parse_ompi_info(NEW)


@pytest.mark.parametrize("text", [OLD, NEW])
def test_every_parameter_of_the_output_is_there_once(text: str) -> None:
    names = {line.split(":")[4] for line in text.split("\n") if ":param:" in line}
    assert set(parse_ompi_info(text)) == names
    assert len(names) > 80


def test_a_plain_number(old: dict[str, ParamInfo]) -> None:
    info = old["btl_vader_eager_limit"]
    assert (info.type, info.default, info.level, info.source) == ("size_t", "4096", 4, "default")
    assert (info.framework, info.component, info.enum) == ("btl", "vader", {})
    assert info.help.startswith("Maximum size (in bytes, including header)")  # data


def test_types_are_reduced_to_six(old: dict[str, ParamInfo], new: dict[str, ParamInfo]) -> None:
    found = {info.type for info in [*old.values(), *new.values()]}
    assert found == {"int", "unsigned", "size_t", "bool", "string", "double"}


def test_enumerated_values(old: dict[str, ParamInfo], new: dict[str, ParamInfo]) -> None:
    assert old["btl_vader_single_copy_mechanism"].enum == {1: "cma", 4: "emulated", 3: "none"}
    assert new["mpi_leave_pinned"].enum == {0: "false", 1: "true", -1: "auto"}
    assert len(old["coll_tuned_allgather_algorithm"].enum) == 7
    assert new["coll_tuned_allgather_algorithm"].enum[7] == "sparbit"


def test_colons_in_help_and_value_do_not_cut_them(old: dict[str, ParamInfo]) -> None:
    assert "3: pipeline, 4: split binary tree" in old["coll_tuned_bcast_algorithm"].help  # data
    assert (
        old["mca_base_component_path"].default
        == "/opt/openmpi/lib/openmpi:/home/user/.openmpi/components"
    )


def test_synonyms_and_deprecation(old: dict[str, ParamInfo], new: dict[str, ParamInfo]) -> None:
    assert new["btl_vader_eager_limit"].synonym_of == "btl_sm_eager_limit"
    assert not new["btl_vader_eager_limit"].deprecated
    assert new["btl_sm_eager_limit"].synonym_of is None
    assert old["mca_param_files"].synonym_of == "mca_base_param_files"
    assert old["mca_param_files"].deprecated
    # The current name of this one is not listed itself.
    assert old["mpi_preconnect_all"].synonym_of == "mpi_preconnect_mpi"
    assert "mpi_preconnect_mpi" not in old


ROWS = """\
mca:a:b:param:a_b_x:value:1
mca:a:b:param:a_b_x:type:unsigned_long_long
mca:a:b:param:a_b_x:disabled:{disabled}
"""


def test_disabled_parameters_are_left_out() -> None:
    assert set(parse_ompi_info(ROWS.format(disabled="false"))) == {"a_b_x"}
    assert parse_ompi_info(ROWS.format(disabled="true")) == {}


def test_the_source_of_a_value_is_kept() -> None:
    text = "mca:a:b:param:x:value:1\nmca:a:b:param:x:source:file (/etc/a:b.conf:3)\n"
    assert parse_ompi_info(text)["x"].source == "file (/etc/a:b.conf:3)"


def test_odd_rows_are_skipped() -> None:
    text = (
        "mca:a:b:param:x:level:many\nmca:a:b:param:x:enumerator:value:one:two\n"
        "mca:a:b:param:x:enumerator:value:7\nmca:a:b:param:x:synonym_of:other:y\n"
        "mca:a:b:param::value:1\nmca:a:b:pvar:p:value:1\nnonsense\n\n:::::::\n"
    )
    info = parse_ompi_info(text)["x"]
    assert (info.level, info.enum, info.synonym_of) == (9, {}, None)
    assert set(parse_ompi_info(text)) == {"x"}


LINES = NEW.split("\n")[20:260]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_mutated_output_never_crashes(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(LINES) - 12))
    text = "\n".join(LINES[start : start + 12])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 8))
        text = text[:place] + data.draw(st.text(max_size=6)) + text[place + cut :]
    for name, info in parse_ompi_info(text).items():
        assert info.name == name
        assert name
        assert all(isinstance(number, int) for number in info.enum)


@settings(max_examples=100)
@given(st.text())
def test_any_text_at_all_never_crashes(text: str) -> None:
    assert isinstance(parse_ompi_info(text), dict)
    assert parse_ompi_info(f"mca:f:c:param:n:help:{text}")["n"].help == text.split("\n")[0].rstrip(
        "\r"
    )


def test_a_command_that_does_not_run_is_told(tmp_path: Path) -> None:
    with refused(RunnerError, "mpi.parameter_list"):
        read_parameters(tmp_path / "no_such_command")


def test_a_command_that_is_something_else_is_told() -> None:
    with pytest.raises(RunnerError, match="0 parameters"):
        read_parameters(shutil.which("true") or "true")


@pytest.mark.mpi
def test_the_real_command() -> None:
    beside = Path(sys.executable).parent / "ompi_info"
    command = str(beside) if beside.exists() else shutil.which("ompi_info")
    if command is None:
        pytest.skip("no ompi_info beside this Python or on PATH")
    params = read_parameters(command)
    assert len(params) > 300
    assert params["coll_tuned_bcast_algorithm"].enum[0] == "ignore"
    assert params["mpi_yield_when_idle"].type == "bool"


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["openmpi-4.1", "openmpi-4.1.8", "openmpi-5"])
def test_the_system_file_is_the_one_that_ranks_read(name: str, tmp_path: Path) -> None:
    library = library_named(name)
    program, shown = built(library, tmp_path), tmp_path / "shown.txt"
    words = [library.launcher, "-n", "1", "--mca", "mpi_show_mca_params", "all"]
    words += ["--mca", "mpi_show_mca_params_file", str(shown), str(program)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(words, check=True, env=os.environ | allowed, capture_output=True)
    match = re.search(r"^mca_base_param_files=(\S+)", shown.read_text(), re.MULTILINE)
    assert match is not None
    file = Path(match[1].split(",")[-1])
    assert system_folder(library).resolve() / "openmpi-mca-params.conf" == file.resolve()


def test_files_of_parameters_are_read_once_in_a_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".openmpi" / "mca-params.conf"
    file.parent.mkdir()
    hosts = "orte_default_hostfile = hosts\n"
    file.write_text(hosts)
    adapter = OpenMPI(Library("openmpi", "4.1.4", str(tmp_path), "mpirun", {}))
    spec = LaunchSpec(program=("true",), ranks=2)
    with adapter.one_launch():
        assert adapter.names_hosts(spec)
        file.write_text("")
        assert adapter.names_hosts(spec)
    assert not adapter.names_hosts(spec)
    with adapter.one_launch():
        assert not adapter.names_hosts(spec)
        file.write_text(hosts)
    with adapter.one_launch():
        assert adapter.names_hosts(spec)
