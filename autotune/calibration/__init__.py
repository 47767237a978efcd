"""Calibration: the properties of a machine, independent of programs.

Response tables of MPI's primitives are measured once for a cluster.  With them the effect of a
setting on a program follows from one traced run (:mod:`autotune.prediction.composition`).
"""
