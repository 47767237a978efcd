"""Names of parameters: their layer, their other spellings, and other versions."""

from __future__ import annotations

import pytest

from autotune.parameters.catalogue import BELOW, Catalogue, plain_name
from autotune.parameters.fault import Fault, faults_of
from autotune.parameters.request import Request, ValuePlace
from autotune.parameters.shipped import names_text, parse_names, shipped_names, shipped_of
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.parameters.catalogues import catalogue, info


@case_table(
    ("name", "found"),
    [
        ("btl_sm_eager_limit", "btl_sm_eager_limit"),
        ("opal_btl_sm_eager_limit", "btl_sm_eager_limit"),
        ("prte_plm_base_verbose", "plm_base_verbose"),
        ("opal_btl", None),
        ("btl_sm", None),
    ],
)
def test_a_name_may_have_its_project_before_it(name: str, found: str | None) -> None:
    known = catalogue().find(name)
    assert (known and known.name) == found


def test_older_prefixes_of_mpich_are_known() -> None:
    known = catalogue("4.0.2", "mpich").find("MPICH_ASYNC_PROGRESS")
    assert known is not None
    assert known.name == "MPIR_CVAR_ASYNC_PROGRESS"


@case_table(
    ("name", "layer"),
    [
        ("OMPI_MCA_btl", "mca"), ("PRTE_MCA_plm", "prte"), ("PMIX_MCA_ptl", "pmix"),
        ("UCX_TLS", "ucx"), ("FI_PROVIDER", "libfabric"), ("MPIR_CVAR_X", None), ("HOME", None),
    ],
)  # fmt: skip
def test_a_variable_belongs_to_a_layer_by_its_prefix(name: str, layer: str | None) -> None:
    assert catalogue().layer_of(name) == layer
    assert plain_name("OMPI_MCA_btl") == "btl"


def test_the_nearest_name_may_be_one_that_was_renamed() -> None:
    old = Catalogue("openmpi", "4.1.4", {"mca": {"btl_vader_eager_limit": None}})
    assert old.nearest("btl_sm_eager_limt") == ["btl_vader_eager_limit"]
    assert catalogue().nearest("btl_sm_eager_limt") == ["btl_sm_eager_limit"]


def test_the_shipped_names_stand_in_for_a_library_that_lists_nothing() -> None:
    own = Catalogue.of(Library("openmpi", "5.0.3", "/none", "/none/mpirun"))
    assert not own.is_complete
    assert own.find("plm_ssh_num_concurrent", "prte")
    assert own.find("coll_tuned_bcast_algorithm", "mca")
    assert not own.find("btl_vader_single_copy_mechanism")
    series, layer = own.other_series("btl_openib_flags") or (None, "")
    assert (series and series.series, layer) == ("4.1", "mca")


@case_table(
    ("family", "version", "series"),
    [
        ("openmpi", (5, 0, 11), "5.0"), ("openmpi", (4, 1), "4.1"), ("mpich", (4, 2, 0), "4.3"),
        ("impi", (2021, 12), "2021"), ("openmpi", (3, 1), None), ("other", (1,), None),
    ],
)  # fmt: skip
def test_a_version_has_its_series(
    family: str, version: tuple[int, ...], series: str | None
) -> None:
    found = shipped_of(family, version)
    assert (found and found.series) == series


def test_each_shipped_file_has_names() -> None:
    sizes = {f"{one.family}-{one.series}": len(one.all) for one in shipped_names()}
    assert set(sizes) >= {"openmpi-4.1", "openmpi-5.0", "mpich-5.0", "impi-2021", "ucx-1.20"}
    assert min(sizes.values()) > 100


def test_a_table_of_names_is_read_as_it_was_written() -> None:
    layers = {
        "mca": ["pml", "pml_ob1_a", "pml_ob1_b", "UCX_TLS", "MPIR_CVAR_A_B"],
        "prte": ["x_y_z"],
    }
    text = names_text(layers, "from nowhere")
    assert parse_names(text) == {layer: frozenset(names) for layer, names in layers.items()}


def test_a_version_without_shipped_names_has_only_what_it_lists() -> None:
    assert not Catalogue.shipped(Library("openmpi", "9.0.0", "", "")).is_usable
    own = Catalogue.shipped(Library("openmpi", "9.0.0", "", "", {"btl": info("btl", "string", "")}))
    assert own.is_usable
    assert own.find("btl")


def faults(own: Catalogue, layer: str, name: str, value: str) -> list[Fault]:
    place = ValuePlace.EXPORT if layer in BELOW.values() else ValuePlace.LINE
    return faults_of([Request(name, value, place, layer, name, name)], own, commutes=True)


@pytest.mark.parametrize("own", [catalogue(), catalogue("4.0.2", "mpich")])
def test_right_names_are_no_faults_and_near_ones_lead_to_them(own: Catalogue) -> None:
    pairs = [
        (layer, name, one.default if one is not None else "")
        for layer, params in own.layers.items()
        for name, one in params.items()
    ]
    assert len(pairs) > 5
    for layer, name, default in pairs:
        kinds = [f for f in faults(own, layer, name, default) if f.kind != "no_effect"]
        assert all(fault.is_harmless for fault in kinds), name
        wrong = name[:-1] + ("Q" if name.isupper() else "q")
        (fault,) = (f for f in faults(own, layer, wrong, default) if f.near)
        assert fault.near[0] == name
