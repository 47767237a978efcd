"""``autotune explain``: what a parameter means here, who sets it, and whether it can act."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import Mpi
from autotune.terminal.explain import print_parameter
from autotune.terminal.render import write_document


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Parameter or variable: btl_sm_eager_limit, OMPI_MCA_pml, UCX_TLS, FI_PROVIDER, "
            "MPIR_CVAR_..., I_MPI_...",
        ),
    ],
    mpi: Mpi = None,
    quick: Annotated[
        bool, opt("--quick", "Start no ranks to see which transport is in force.")
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Explain one parameter: meaning, values, who sets it, whether it can act, measured effect.

    Parameters of Open MPI, PRRTE, PMIx, MPICH and Intel MPI, of UCX and libfabric. An unknown name
    is an error with the nearest known ones.
    """
    from autotune.api.explain import explain_parameter

    shown = explain_parameter(name, mpi, store, quick)
    if write_document(shown, json_out):
        print_parameter(shown)
