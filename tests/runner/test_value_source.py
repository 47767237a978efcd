"""Where a refused value comes from."""

from __future__ import annotations

from runner.outcome.value_source import all_words, source_words
from tests.case_table import case_table

INHERITED = {
    "/etc/openmpi/openmpi-mca-params.conf:btl": "nothere,self",
    "/home/user/.openmpi/mca-params.conf:mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "odd",
}


@case_table(
    ("message", "places"),
    [
        (
            "not found\n\nHost: vm\nFramework: btl\nComponent: nothere\n",
            ["openmpi-mca-params.conf"],
        ),
        (
            "The policy is not recognized:\n\n  Policy: odd\n",
            ["OMPI_MCA_hwloc_base_binding_policy"],
        ),
        ("the value 'odd' is invalid", ["OMPI_MCA_hwloc_base_binding_policy"]),
        ("an odd message about nothere and self", []),
        ("", []),
    ],
)
def test_the_place_is_named(message: str, places: list[str]) -> None:
    words = source_words(INHERITED, message)
    assert [name for name in INHERITED if name.rpartition(":")[0] in words and words] or not places
    assert all(place in words for place in places)
    assert bool(words) == bool(places)
    assert "mpi_yield_when_idle" not in words


def test_all_settings_are_named_where_the_message_names_none() -> None:
    settings = {"/etc/site.conf:pml": "nothere", "OMPI_MCA_btl": "tcp"}
    words = all_words(settings)
    assert "pml = nothere" in words
    assert "OMPI_MCA_btl=tcp" in words
    assert all_words({}) == ""
