"""Which place counts, and which layer a value reaches, as it was measured."""

from __future__ import annotations

import itertools

from autotune.parameters.request import (
    Request,
    ValuePlace,
    by_precedence,
    from_file,
    from_variables,
    option_layer,
    reaches,
)
from tests.case_table import case_table
from tests.parameters.catalogues import catalogue

NEW, OLD = catalogue(), catalogue("4.1.4")


def _request(name: str, place: ValuePlace, layer: str = "mca") -> Request:
    return Request(name, "1", place, layer, name)


LINE, ENVIRONMENT, USER = ValuePlace.LINE, ValuePlace.ENVIRONMENT, ValuePlace.USER_FILE


@case_table(
    ("name", "place", "given", "layer", "arrives"),
    [
        ("coll_tuned_priority", LINE, "mca", "mca", True),
        ("coll_tuned_priority", LINE, "prte", "mca", False),
        ("coll_tuned_priority", LINE, "pmix", "mca", False),
        ("coll_tuned_priority", ENVIRONMENT, "prte", "mca", False),
        ("coll_tuned_priority", USER, "pmix", "mca", True),
        ("coll_tuned_priority", USER, "prte", "mca", False),
        ("plm_base_verbose", LINE, "mca", "prte", True),
        ("rml_base_radix", LINE, "mca", "prte", False),
        ("display", LINE, "mca", "prte", False),
        ("plm_base_verbose", LINE, "pmix", "prte", False),
        ("plm_base_verbose", ENVIRONMENT, "mca", "prte", False),
        ("plm_base_verbose", USER, "mca", "prte", False),
        ("plm_base_verbose", USER, "pmix", "prte", True),
        ("ptl_base_max_retries", LINE, "mca", "pmix", True),
        ("ptl_base_max_retries", LINE, "prte", "pmix", False),
        ("ptl_base_max_retries", USER, "prte", "pmix", True),
    ],
)
def test_a_value_reaches_its_layer_or_not(
    name: str, place: ValuePlace, given: str, layer: str, arrives: bool
) -> None:
    assert reaches(_request(name, place, given), layer, NEW) is arrives


def test_one_namespace_of_the_old_generation_reaches_all() -> None:
    assert reaches(_request("plm_base_verbose", LINE), "mca", OLD)


def test_options_name_layers() -> None:
    options = ("--mca", "-gmca", "--prtemca", "--gpmixmca")
    assert [option_layer(one) for one in options] == ["mca", "mca", "prte", "pmix"]


def _order(own: list[ValuePlace], generation: object) -> list[ValuePlace]:
    requests = [_request("btl", place) for place in own]
    return [one.place for one in by_precedence(requests, generation)]  # type: ignore[arg-type]


def test_the_line_counts_before_the_environment_and_that_before_files() -> None:
    right = [
        ValuePlace.OVERRIDE_FILE,
        ValuePlace.EXPORT,
        LINE,
        ValuePlace.OPTIONS_FILE,
        ENVIRONMENT,
    ]
    files = {"4.1": [ValuePlace.LOADED_FILE, USER], "5.0": [USER, ValuePlace.LOADED_FILE]}
    for generation, (first, second) in ((OLD, files["4.1"]), (NEW, files["5.0"])):
        whole = [*right, first, second, ValuePlace.SYSTEM_FILE]
        for several in itertools.islice(itertools.permutations(whole), 0, 40000, 997):
            assert _order(list(several), generation) == whole


def test_variables_of_launchers_and_of_others_are_no_requests() -> None:
    variables = {"OMPI_MCA_PREFIXES": "mca", "HOME": "/", "UCX_TLS": "sm", "I_MPI_PIN": "1",
                 "OMPI_MCA_btl": "self"}  # fmt: skip
    names = {one.name: one.layer for one in from_variables(variables, NEW)}
    assert names == {"UCX_TLS": "ucx", "btl": "mca"}
    assert not list(from_variables({"OMPI_MCA_btl": "self"}, catalogue("4.0.2", "mpich")))


@case_table(
    ("path", "place", "layer"),
    [
        ("/home/me/.openmpi/mca-params.conf", USER, "mca"),
        ("/home/me/.prte/mca-params.conf", USER, "prte"),
        ("/home/me/.pmix/mca-params.conf", USER, "pmix"),
        ("/opt/etc/openmpi-mca-params.conf", ValuePlace.SYSTEM_FILE, "mca"),
        ("/opt/etc/prte-mca-params.conf", ValuePlace.SYSTEM_FILE, "prte"),
        ("/opt/etc/openmpi-mca-params-override.conf", ValuePlace.OVERRIDE_FILE, "mca"),
        ("/home/me/.mpiexec.conf", ValuePlace.OPTIONS_FILE, "mca"),
    ],
)
def test_a_file_has_its_place_and_layer(path: str, place: ValuePlace, layer: str) -> None:
    (request,) = from_file(path, [(7, "btl", "self")], NEW)
    assert (request.place, request.layer, request.line) == (place, layer, 7)
    assert request.origin == f"{path}:7"
    (below,) = from_file(path, [(0, "UCX_TLS", "sm")], NEW)
    assert (below.layer, below.origin) == ("ucx", path)
