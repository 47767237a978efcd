"""Small catalogues as data."""

from __future__ import annotations

from autotune.parameters.catalogue import Catalogue
from runner.mpi.library import ParamInfo


def info(name: str, kind: str = "int", default: str = "0", **more: object) -> ParamInfo:
    """A parameter whose framework and component are the first two words of its name."""
    framework, _, rest = name.partition("_")
    return ParamInfo(name, kind, default, framework, rest.partition("_")[0], **more)  # type: ignore[arg-type]


def catalogue(version: str = "5.0.11", family: str = "openmpi") -> Catalogue:
    """Open MPI with the layers that its version has, or MPICH, or Intel MPI."""
    own = {
        "openmpi": [
            info("btl", "string", ""),
            info("btl_sm_eager_limit", "size_t", "4096"),
            info("coll_tuned_priority", default="30"),
            info("coll_base_verbose", "int", "none", enum={0: "none", 20: "info"}),
            info("btl_sm_flags", "unsigned", "send,put", enum={1: "send", 2: "put", 4: "get"}),
            info("mpi_yield_when_idle", "bool", "false"),
            info("pml_ob1_rate", "double", "0.5"),
        ],
        "mpich": [
            ParamInfo("MPIR_CVAR_ASYNC_PROGRESS", "int", "0"),
            ParamInfo("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "string", "auto",
                      enum={0: "auto", 1: "binomial"}, by_name=True),
        ],
        "impi": [ParamInfo("I_MPI_ADJUST_BCAST", "int", "", enum={n: str(n) for n in range(4)})],
    }[family]  # fmt: skip
    layers = {"mca": {one.name: one for one in own}}
    if family == "openmpi" and version >= "5":
        layers["prte"] = {n: info(n) for n in ("plm_base_verbose", "rml_base_radix", "display")}
        layers["pmix"] = {"ptl_base_max_retries": info("ptl_base_max_retries")}
    layers["ucx"] = {
        "UCX_TLS": ParamInfo("UCX_TLS", "string", "all", "UCX"),
        "UCX_LOG_LEVEL": ParamInfo("UCX_LOG_LEVEL", "string", "WARN", "UCX",
                                   enum={0: "WARN", 1: "INFO"}, by_name=True),
        "UCX_TCP_NODELAY": ParamInfo("UCX_TCP_NODELAY", "bool", "y", "UCX"),
    }  # fmt: skip
    layers["libfabric"] = {"FI_LOG_INTERVAL": ParamInfo("FI_LOG_INTERVAL", "int", "", "libfabric")}
    return Catalogue(family, version, layers, components={"btl": frozenset({"sm", "self", "tcp"})})
