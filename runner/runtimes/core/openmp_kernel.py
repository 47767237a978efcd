"""The work of an OpenMP thread in a parallel region (see :mod:`runner.runtimes.core.openmp`)."""

from __future__ import annotations

from runner.runtimes.core.atomic import call_0, call_nothing_4, call_nothing_6, load

FUNCTIONS = {"share": "void(int64)"}

HEAD, TASK = 3, 8
"""Words of a region before its tasks, and of each task."""


def share(region: int) -> None:
    """Do this thread's share of the tasks of a region.

    A region is an array of words: the addresses of ``omp_get_thread_num`` and
    ``omp_get_num_threads``, the number of tasks, then for each task the address of a kernel, the
    number of its pointers, and six words for the pointers. Thread n does the tasks n, n + size of
    the team, ...
    """
    number = call_0(load(region))
    size = call_0(load(region + 8))
    count = load(region + 16)
    while number < count:
        task = region + 8 * (HEAD + TASK * number)
        kernel, a, b = load(task), load(task + 16), load(task + 24)
        c, d = load(task + 32), load(task + 40)
        if load(task + 8) == 4:
            call_nothing_4(kernel, a, b, c, d)
        else:
            call_nothing_6(kernel, a, b, c, d, load(task + 48), load(task + 56))
        number += size
