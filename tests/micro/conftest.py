"""Starting probes under the real mpirun, as the applications are."""

from tests.apps.conftest import launch

__all__ = ["launch"]
