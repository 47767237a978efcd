"""Multigrid on a Cartesian mesh with cut cells: uneven work along a space-filling curve.

A stand-in for mpix_flowCart (Martin 2018, chapter 8; the code itself is not public, digest 8.4).
"""
