"""The common parts of the applications."""
