"""Values that a library understands, and those that it does not."""

from __future__ import annotations

from autotune.parameters.values import value_problem
from tests.case_table import case_table
from tests.parameters.catalogues import catalogue

OPEN_MPI, MPICH, INTEL = catalogue(), catalogue("4.0.2", "mpich"), catalogue("2021.18", "impi")


@case_table(
    ("own", "name", "value"),
    [
        (OPEN_MPI, "btl_sm_eager_limit", "64k"), (OPEN_MPI, "btl_sm_eager_limit", "0x10"),
        (OPEN_MPI, "mpi_yield_when_idle", "yes"), (OPEN_MPI, "mpi_yield_when_idle", "2"),
        (OPEN_MPI, "coll_base_verbose", "9"), (OPEN_MPI, "coll_base_verbose", "info"),
        (OPEN_MPI, "btl_sm_flags", "send,put"), (OPEN_MPI, "btl_sm_flags", "3"),
        (OPEN_MPI, "pml_ob1_rate", "0.25"), (OPEN_MPI, "btl", "sm,self"), (OPEN_MPI, "btl", "^uct"),
        (OPEN_MPI, "btl", "vader,self"), (OPEN_MPI, "btl", ""),
        (OPEN_MPI, "UCX_LOG_LEVEL", "info"), (OPEN_MPI, "UCX_TCP_NODELAY", "n"),
        (OPEN_MPI, "UCX_TLS", "anything"), (OPEN_MPI, "FI_LOG_INTERVAL", "100"),
        (MPICH, "MPIR_CVAR_ASYNC_PROGRESS", "true"), (MPICH, "MPIR_CVAR_ASYNC_PROGRESS", "1"),
        (MPICH, "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial"),
        (INTEL, "I_MPI_ADJUST_BCAST", "2"), (INTEL, "I_MPI_ADJUST_BCAST", "2:0-1024;3"),
    ],
)  # fmt: skip
def test_an_understood_value_is_no_problem(own: object, name: str, value: str) -> None:
    known = own.find(name)  # type: ignore[attr-defined]
    assert value_problem(value, known, own) == ("", "")  # type: ignore[arg-type]


@case_table(
    ("own", "name", "value", "meant"),
    [
        (OPEN_MPI, "btl_sm_eager_limit", "large", ""), (OPEN_MPI, "btl_sm_eager_limit", "-1", ""),
        (OPEN_MPI, "mpi_yield_when_idle", "often", ""),
        (OPEN_MPI, "coll_base_verbose", "infoo", "info"),
        (OPEN_MPI, "btl_sm_flags", "sendd", "send"), (OPEN_MPI, "btl", "sm,slf", "sm,self"),
        (OPEN_MPI, "UCX_LOG_LEVEL", "inffo", "info"), (OPEN_MPI, "UCX_TCP_NODELAY", "maybe", ""),
        (OPEN_MPI, "FI_LOG_INTERVAL", "long", ""), (MPICH, "MPIR_CVAR_ASYNC_PROGRESS", "maybe", ""),
        (MPICH, "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomal", "binomial"),
        (MPICH, "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "1", ""), (INTEL, "I_MPI_ADJUST_BCAST", "9", ""),
    ],
)  # fmt: skip
def test_another_value_is_a_problem(own: object, name: str, value: str, meant: str) -> None:
    known = own.find(name)  # type: ignore[attr-defined]
    problem, found = value_problem(value, known, own)  # type: ignore[arg-type]
    assert problem
    assert found == meant
