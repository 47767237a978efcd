"""Multigrid on a Cartesian mesh with cut cells: uneven work along a space-filling curve.

It replaces mpix_flowCart (Martin 2018, chapter 8), whose code is not public.
"""
