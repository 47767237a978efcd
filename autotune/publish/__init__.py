"""What was learned, as files that an MPI loads, each seen to be obeyed before it is handed over."""

from autotune.publish.tune_file import NotObeyed, write_tune_file

__all__ = ["NotObeyed", "write_tune_file"]
