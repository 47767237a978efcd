"""The thread level that MPI was started with."""

from __future__ import annotations

from runner.errors import RunnerError


def require_level(level: str, who: str, error: type[RunnerError]) -> None:
    """Refuse a lower thread level than ``level``, a name of mpi4py's.

    Raises ``error``; ``who`` names the switch that needs the level.
    """
    from mpi4py import MPI

    if MPI.Query_thread() < getattr(MPI, f"THREAD_{level.upper()}"):
        raise error(
            f"{who} needs the MPI thread level '{level}', which this run does not have: this MPI "
            "library does not grant it, or mpi4py.MPI was imported before the level was asked for",
            code="workers.thread_level",
        )
