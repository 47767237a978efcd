"""``autotune space``: what may vary on this MPI."""

from __future__ import annotations

import typer

space = typer.Typer(help="Parameter spaces.", no_args_is_help=True)
