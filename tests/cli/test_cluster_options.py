"""The launch options that ``autotune cluster init`` chooses, and the reason that it writes."""

from __future__ import annotations

from autotune.api.cluster_definition import NO_OPTIONS, launch_options, without_ofi
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table

OFI = ("--mca", "btl", "^ofi")


@case_table(
    ("plain", "without", "options"),
    [
        (2.5, 0.5, OFI),
        (1.18, 0.17, OFI),
        (0.52, 0.5, ()),
        (0.5, 0.6, ()),
        (0.2, 0.16, ()),
    ],
)
def test_what_saves_time_on_one_node_is_left_out(
    plain: float, without: float, options: tuple[str, ...]
) -> None:
    chosen, why = launch_options({(): plain, OFI: without})
    assert chosen == options
    assert (why == NO_OPTIONS) == (not options)


def test_a_library_without_the_component_needs_no_options() -> None:
    assert launch_options({(): 0.5}) == ((), NO_OPTIONS)


@case_table(
    ("components", "value"),
    [("", "^ofi"), ("^uct,openib", "^uct,openib,ofi"), ("^uct,ofi", None), ("self,sm", None)],
)
def test_the_exclusions_of_the_site_stay(components: str, value: str | None) -> None:
    params = {
        "btl": ParamInfo("btl", "string", components),
        "btl_ofi_mode": ParamInfo("btl_ofi_mode", "int", "1"),
    }
    library = Library("openmpi", "5.0.11", "/opt/bin", "/opt/bin/mpirun", params=params)
    assert without_ofi(library) == ([] if value is None else [("--mca", "btl", value)])
