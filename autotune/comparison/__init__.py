"""Comparisons of two settings, and the noise of one."""
