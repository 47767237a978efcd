"""The tests; what is set here is set before any library is loaded."""

import os

# Several pytest processes share the CPUs. With a thread for each CPU in every process, BLAS takes
# ten times as long for small matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
