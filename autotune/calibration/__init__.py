"""Calibration: what a machine does, apart from what a program does.

Response tables of MPI's primitives are measured once for a cluster.  With them the effect of a
setting on a program follows from one traced run (:mod:`autotune.prediction.composition`).
"""
