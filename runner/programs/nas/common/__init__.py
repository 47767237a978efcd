"""What the NAS kernels share."""
