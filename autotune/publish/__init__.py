"""Publication: proven settings as files that an MPI library loads, tested before installation."""

from autotune.publish.tune_file import NotObeyed, write_tune_file

__all__ = ["NotObeyed", "write_tune_file"]
