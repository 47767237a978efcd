"""A Lagrangian-Eulerian hydrodynamics step, modelled on CloverLeaf 3D (Martin 2018, chapter 7)."""
