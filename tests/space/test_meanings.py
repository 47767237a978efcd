"""Settings in the words of another MPI library: what is translated, and what is left out."""

from __future__ import annotations

from autotune.space import Parameter, Setting, Space
from autotune.space.meanings import FAMILIES, MEANINGS, translate
from tests.case_table import case_table

TARGETS = Space(
    "mpich",
    (
        Parameter("MPIR_CVAR_BCAST_INTRA_ALGORITHM", ("binomial", "scatter_ring_allgather")),
        Parameter("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", (4096, 16384, 65536)),
        Parameter("MPIR_CVAR_CH4_CMA_ENABLE", (0, 1)),
        Parameter("MPIR_CVAR_NOLOCAL", (1,)),
        Parameter("UCX_TLS", ("self,posix",), "env"),
        Parameter("bind_to", ("core", "none"), "placement"),
    ),
)


def here(text: str, source: str = "openmpi") -> tuple[str, tuple[str, ...]]:
    found = translate(Setting.parse(text), source, TARGETS, "mpich")
    return found.setting.key, found.left_out


@case_table(
    ("said", "meant"),
    [
        ("coll_tuned_bcast_algorithm=6", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial"),
        ("coll_tuned_bcast_algorithm=9", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=scatter_ring_allgather"),
        ("smsc=^cma", "MPIR_CVAR_CH4_CMA_ENABLE=0"),
        ("btl_vader_single_copy_mechanism=none", "MPIR_CVAR_CH4_CMA_ENABLE=0"),
        ("btl_sm_eager_limit=16384", "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE=16384"),
        ("btl_vader_eager_limit=32768", "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE=16384"),
        ("pml=ucx", "MPIR_CVAR_NOLOCAL=1"),
        ("bind_to=core", "bind_to=core"),
        ('UCX_TLS="self,posix"', 'UCX_TLS="self,posix"'),
    ],
)
def test_a_meaning_has_another_spelling(said: str, meant: str) -> None:
    assert here(said) == (meant, ())


@case_table(
    "said",
    [
        "coll_tuned_bcast_algorithm=2",  # chain: MPICH has none
        "coll_tuned_allreduce_algorithm=3",  # not in the space
        "btl_sm_eager_limit=128",  # no level is near
        "btl_sm_fbox_max=4",
        "bind_to=numa",
    ],
)
def test_what_has_no_counterpart_is_left_out(said: str) -> None:
    assert here(said) == ("default", (said.partition("=")[0],))


def test_intel_numbers_are_names_of_mpich() -> None:
    assert here("I_MPI_ADJUST_BCAST=3", "impi")[0].endswith("scatter_ring_allgather")


def test_the_same_family_keeps_its_words() -> None:
    text = "MPIR_CVAR_CH4_CMA_ENABLE=0,bind_to=core"
    assert here(text, "mpich") == (text, ())


def test_the_table_is_in_order() -> None:
    for meaning in MEANINGS:
        assert len(meaning.names) == len(FAMILIES)
        assert sum(name is not None for name in meaning.names) >= 2
        for row in meaning.rows:
            assert len(row) == len(FAMILIES)
            assert sum(value is not None for value in row) >= 2
