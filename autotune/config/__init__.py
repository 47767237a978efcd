"""Configuration files: applications and clusters, found by name and validated."""
