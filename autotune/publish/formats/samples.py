"""Sample contents of a library: small values with which a launch shows whether it loads a file."""

from __future__ import annotations

from autotune.collective_rules import Rule
from autotune.publish.content import Content
from runner.mpi.library import Library

_BOUND = Content({"placement": {"bind_to": "none"}})


def sample_contents(library: Library) -> tuple[Content, ...]:
    """Values that are not the library's defaults and that a launch shows, the plainest first.

    Empty for a family of an installed package: its formats override
    :meth:`autotune.publish.formats.base.Format.sample`.
    """
    if library.family == "openmpi":
        eager = "btl_sm_eager_limit" if library.version_tuple >= (5,) else "btl_vader_eager_limit"
        values, algorithm = {eager: "8192"}, "6"
    elif library.family == "mpich":
        values, algorithm = {"MPIR_CVAR_CTXID_EAGER_SIZE": "3"}, "MPIR_Bcast_intra_binomial"
    elif library.family == "impi":
        values, algorithm = {"I_MPI_ADJUST_BCAST": "3"}, "3"
    else:
        return ()
    return Content({"mca": values}), _BOUND, Content(rules=(Rule("bcast", 1, 0, algorithm),))
