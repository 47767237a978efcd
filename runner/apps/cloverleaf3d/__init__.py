"""A Lagrangian-Eulerian hydrodynamics step after CloverLeaf 3D (Martin 2018, chapter 7)."""
