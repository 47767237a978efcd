"""Micro-benchmarks in the manner of the OSU suite: short programs that test one operation each."""
