"""Jacobi3D: Poisson's equation on a box by damped Jacobi updates (Martin 2018, chapter 5)."""
