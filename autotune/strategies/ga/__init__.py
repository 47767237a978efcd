"""The genetic search: ``strategy`` (for studies and for Optuna), ``population``, ``operators``."""
