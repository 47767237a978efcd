"""Micro-benchmarks after the manner of the OSU suite: the fastest probes there are."""
