"""Looking through a library's parameters and starting a file from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space.check import check_file
from autotune.space.discover import as_toml, discover, guess_levels
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW, OLD


def test_everything_but_other_names_and_talk() -> None:
    names = [info.name for info in discover(NEW)]
    assert names == sorted(names)
    assert "btl_sm_eager_limit" in names
    assert "btl_vader_eager_limit" not in names
    assert "btl_base_verbose" not in names
    assert "mpi_preconnect_all" in names


def test_pattern_and_level() -> None:
    assert [i.name for i in discover(NEW, "sm_eager")] == ["btl_sm_eager_limit"]
    assert [i.name for i in discover(NEW, "SM_EAGER")] == ["btl_sm_eager_limit"]
    globbed = [i.name for i in discover(OLD, "btl_*_eager_limit")]
    assert globbed == ["btl_tcp_eager_limit", "btl_tcp_rndv_eager_limit",
                       "btl_vader_eager_limit", "btl_vader_rndv_eager_limit"]  # fmt: skip
    easy = discover(NEW, level=4)
    assert 0 < len(easy) < len(discover(NEW))
    assert all(info.level <= 4 for info in easy)
    assert discover(NEW, "no_such_thing") == []


def test_a_mute_library_is_told() -> None:
    with refused(UsageError, "mpi.no_parameter_list"):
        discover(Library("mpich", "5.0.2", "", ""))


@case_table(
    ("name", "levels"),
    [
        ("btl_sm_eager_limit", [1024, 2048, 8192, 16384]),
        ("mpi_yield_when_idle", "bool"),
        ("coll_tuned_bcast_algorithm", "enum"),
        ("mpi_ft_detector_period", [1.5, 6.0]),
        ("btl_tcp_links", [2, 4]),
        ("btl_tcp_sndbuf", None),
        ("btl_sm_flags", None),
        ("smsc", None),
        ("btl_tcp_put_limit", None),
    ],
)
def test_guessed_levels(name: str, levels: object) -> None:
    assert guess_levels(NEW.params[name]) == levels


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_the_file_that_is_started_passes_the_check(library: Library, tmp_path: Path) -> None:
    infos = discover(library)
    text = as_toml(infos, library)
    path = tmp_path / "started.toml"
    path.write_text(text)
    report = check_file(str(path), library)
    assert [str(finding) for finding in report.findings] == []
    guessed = [info.name for info in infos if guess_levels(info) is not None]
    assert report.space is not None
    assert list(report.space.names) == guessed
    assert all(f"[parameters.{info.name}]" in text for info in infos)


ENDLESS = ("inf", "-inf", "nan", "1e308", "9" * 400, "5e-324")
"""Defaults around which no finite levels lie."""


@case_table("default", ENDLESS)
def test_no_levels_are_guessed_around_an_endless_number(default: str) -> None:
    for kind in ("double", "int"):
        assert guess_levels(ParamInfo("odd", kind, default)) is None


@settings(max_examples=25, deadline=None)
@given(
    st.text(),
    st.text(max_size=8),
    st.sampled_from(["int", "unsigned", "size_t", "bool", "string", "double"]),
    st.sampled_from([*ENDLESS, "0", "1", "17", "-1", "1e3", "", "auto", "99999999999999"]),
)
def test_any_description_gives_a_file_that_loads(
    tmp_path_factory: pytest.TempPathFactory, text: str, word: str, kind: str, default: str
) -> None:
    odd = ParamInfo("odd_one", kind, default, help=text, enum={1: word} if word else {})
    plain = ParamInfo("plain", "int", "8", help="x")
    library = Library("openmpi", "5.0.11", "", "", {"odd_one": odd, "plain": plain})
    path = tmp_path_factory.mktemp("odd") / "odd.toml"
    path.write_text(as_toml([odd, plain], library), encoding="utf-8", errors="replace")
    assert [str(finding) for finding in check_file(str(path), library).errors] == []
