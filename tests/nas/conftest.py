"""Kernels run under the real mpirun, started as the applications are."""

from tests.apps.conftest import launch

__all__ = ["launch"]
