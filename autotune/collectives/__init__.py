"""Tables of collective algorithms: per communicator size and message size, the best that is proven.

Found by the micro-benchmarks in a small part of the runs of a grid, proven as a rules file.
"""
