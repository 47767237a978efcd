"""The common parts of the NAS kernels."""
