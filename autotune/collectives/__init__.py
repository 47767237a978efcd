"""Rules tables of collectives: the proven best algorithm by number of ranks and message size.

A tournament of micro-benchmarks finds a table with a small part of the runs of a full grid.  The
table is then proven as a rules file.
"""
