"""NAS-style kernels: IS, EP, CG, MG, FT, LU, BT, SP, after the NAS Parallel Benchmarks 3.4 (MPI).

Each kernel follows the published specification (NAS technical reports 95-020 and 02-007, and the
structure of NPB 3.4-MPI): the same decomposition, the same messages, the same iterations, and the
official verification values. The code is our own: Python for the flow of control, mpi4py on numpy
buffers for messages, numba for arithmetic (compiled once, see :mod:`runner.runtimes.core.kernels`).

``python -m runner.programs.nas KERNEL --class S|W|A|B`` runs one kernel. A kernel is a module
``runner.programs.nas.NAME`` with ``PROBLEMS``, a table class name -> parameters, and ``build(comm,
problem)``, which returns a :class:`runner.programs.nas.common.kernel.Kernel`. Its compiled parts
are in ``NAME_kernels.py``. ``NAME_mate.py`` is its form on MATE, over-decomposed, which writes the
same work down as steps (:mod:`runner.programs.nas.common.steps`). The shared parts are in
``common``: random numbers, process grids, checks, the run itself, the printed result.
"""
