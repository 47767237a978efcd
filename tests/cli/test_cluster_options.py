"""The launch options that ``autotune cluster init`` chooses, and the reason that it writes."""

from __future__ import annotations

import pytest

from autotune.api.cluster_definition import NO_OPTIONS, launch_options

TOO_LITTLE = (
    "--mca btl ^ofi saves 0.900 s at a start, too little to leave out what may be the interconnect"
)
OFI = ("--mca", "btl", "^ofi")


@pytest.mark.parametrize(
    ("plain", "without", "options", "why"),
    [
        (2.5, 0.5, OFI, "saves 2.000 s at every start"),  # data
        (
            1.5,
            0.6,
            (),
            TOO_LITTLE,
        ),
        (0.52, 0.5, (), NO_OPTIONS),
        (0.5, 0.6, (), NO_OPTIONS),
    ],
)
def test_a_component_is_left_out_for_much_only(
    plain: float, without: float, options: tuple[str, ...], why: str
) -> None:
    assert launch_options({(): plain, OFI: without}) == (options, why)


def test_a_library_without_the_component_needs_no_options() -> None:
    assert launch_options({(): 0.5}) == ((), NO_OPTIONS)
