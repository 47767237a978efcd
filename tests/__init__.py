"""The tests; what is set here is set before any library is loaded."""

import os
import sys

# Several pytest processes share the CPUs. With a thread for each CPU in every process, BLAS takes
# ten times as long for small matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Containers often forbid Python to keep bytecode. Then each of the thousand processes that the
# tests start compiles what it imports anew, and each process of pytest all test files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Where a machine has libfabric with its verbs provider, each rank of Open MPI reads the symbols of
# the whole kernel at its start: half of the CPU time of a short launch.
os.environ.setdefault("FI_PROVIDER", "^verbs")

# Hypothesis loads what other packages offer it, here the whole of trio, which Selenium brings.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")
