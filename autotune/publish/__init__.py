"""Publication: proven settings as files that an MPI library loads, tested before installation."""

from typing import TYPE_CHECKING

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.publish.tune_file import NotObeyed, write_tune_file

__all__ = ["NotObeyed", "write_tune_file"]

_TUNE_FILE = "autotune.publish.tune_file"
__getattr__ = lazy_names(__name__, {"NotObeyed": _TUNE_FILE, "write_tune_file": _TUNE_FILE})
