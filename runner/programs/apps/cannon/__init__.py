"""Cannon's algorithm for C = A B on a grid of ranks (Martin 2018, chapter 6)."""
