"""Sparse LU factorization with supernodes, right-looking on a mesh of processes (Cicotti 2011,
chapter 5)."""
