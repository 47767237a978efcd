"""``autotune explain``: one screen about a parameter, and near names for an unknown one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.parameters.explanation import SpaceMeaning, explain, meaning_in_spaces
from autotune.parameters.measured_effect import LevelRatio, MeasuredEffect, StudyEffect
from autotune.parameters.request import Request, ValuePlace
from autotune.terminal.explain import print_parameter
from tests.cli.conftest import Cli
from tests.parameters.catalogues import catalogue

EAGER = "btl_sm_eager_limit"


def _requests() -> list[Request]:
    return [
        Request(EAGER, "8192", ValuePlace.ENVIRONMENT, "mca", EAGER, f"OMPI_MCA_{EAGER}"),
        Request(EAGER, "1024", ValuePlace.USER_FILE, "mca", EAGER, "/home/me/mca-params.conf", 3),
    ]


def test_what_counts_is_told_from_what_is_overridden() -> None:
    own = catalogue()
    known = own.find(EAGER)
    assert known is not None
    shown = explain(known, own, _requests(), "ob1: sm", MeasuredEffect(), SpaceMeaning(frozenset()))
    assert [(one.value, one.counts) for one in shown.set_by] == [("8192", True), ("1024", False)]
    assert (shown.in_force, shown.can_act) == ("8192", True)
    none = explain(known, own, [], "ucx: sysv/memory", MeasuredEffect(), SpaceMeaning(frozenset()))
    assert (none.set_by, none.in_force, none.can_act) == ((), "4096", False)


def test_the_screen_has_eighty_columns(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    own = catalogue()
    known = own.find(EAGER)
    assert known is not None
    effect = StudyEffect(3, "nas-lu", LevelRatio("65536", 0.92, 4), LevelRatio("512", 1.31, 2))
    shown = explain(
        known,
        own,
        _requests(),
        "ob1: sm",
        MeasuredEffect(5, 1, (effect,)),
        meaning_in_spaces(EAGER),
    )
    print_parameter(replace(shown, library_help="Maximum size (in bytes) of short messages. " * 9))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 24
    assert text == snapshot


@pytest.mark.mpi
def test_an_unknown_name_is_an_error_with_near_ones(cli: Cli) -> None:
    slip = cli("explain", "coll_tuned_priorty", "--quick")
    assert slip.code == 2
    assert "[parameter.unknown]" in slip.err
    assert "coll_tuned_priority" in slip.err
    assert cli("explain", "nothing_like_it_anywhere", "--quick").code == 2


@pytest.mark.mpi
@pytest.mark.parametrize(
    "name",
    [
        "coll_tuned_bcast_algorithm",
        "UCX_TLS",
        "I_MPI_ADJUST_BCAST",
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM",
    ],
)
def test_each_family_is_explained(cli: Cli, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a library that is not installed are known by name."""
    if name == "UCX_TLS":
        monkeypatch.setenv(name, "sm")
    asked = cli("explain", name, "--quick", "--json", "-")
    if name == "UCX_TLS" and asked.code:
        pytest.skip("no UCX below this MPI")
    assert asked.code == 0, asked.err
    shown = json.loads(asked.out)
    assert shown["name"] == name
    assert name != "UCX_TLS" or shown["set_by"][0]["value"] == "sm"
    assert name != "coll_tuned_bcast_algorithm" or shown["can_act"] is False
