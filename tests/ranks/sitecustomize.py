"""On the path of Python that tests start as ranks: what a rank imports stays, so that a search for
garbage, at its start and at its end, takes a sixth of the CPU time of a short one."""

import atexit
import gc

gc.set_threshold(200_000, 20, 100)
atexit.register(gc.freeze)
