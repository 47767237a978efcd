"""Small programs that print what NPB, OSU, IMB and HPCG print, for the patterns and the look-up.

The text is after outputs that others published of NPB 3.4.2 (FT, class C), OSU 7.5 and 5.8, IMB
and HPCG 3.1; the figures are made up.
"""

from __future__ import annotations

import sys
from pathlib import Path

NPB = """
 {NAME} Benchmark Completed.
 Class           =                        {CLASS}
 Size            =            512x 512x 512
 Iterations      =                       20
 Time in seconds =                    19.07
 Total processes =                       16
 Active processes=                       16
 Mop/s total     =                 20785.44
 Mop/s/process   =                  1299.09
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.2
"""
OSU = """
# OSU MPI {test} Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
{size}                   12.34
"""
OSU_5 = """
# OSU MPI Allreduce Latency Test v5.8
# Size       Avg Latency(us)
{size}                 36.66
"""
BARRIER = """
# OSU MPI Barrier Latency Test v7.5
# Avg Latency(us)
             1.50
"""
BAD_OSU = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)        Validation
1024                   12.34              Fail
"""
PINGPONG = """
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0        50000         0.50         0.00
         4096        50000         2.00      2048.00


# All processes entering MPI_Finalize
"""
SENDRECV = """
# Benchmarking Sendrecv
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0        10000         4.38         4.38         4.38         0.00
        65536        10000         6.01         6.05         6.03     21600.00
"""
ALLREDUCE = """
# Benchmarking Allreduce
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.05         0.03
      1048576         1000    368774.69    377145.91    373427.99
"""
HPCG = """HPCG-Benchmark
version=3.1
Benchmark Time Summary=
Benchmark Time Summary::Total=65.1121
Final Summary=
Final Summary::HPCG result is VALID with a GFLOP/s rating of=8
Final Summary::HPCG 2.4 rating for historical reasons is=8.3
Final Summary::Results are valid but execution time (sec) is=65.1121
"""
BAD_HPCG = """HPCG-Benchmark
version=3.1
Final Summary=
Final Summary::HPCG result is=INVALID.
"""


def write(path: Path, text: str, file: str | None = None, code: int = 0, mpi: bool = False) -> Path:
    """An executable that prints ``text`` (or writes it to ``file``); with ``mpi`` on rank 0 only,
    after MPI_Init."""
    start = "from mpi4py import MPI\nrank = MPI.COMM_WORLD.rank\n" if mpi else "rank = 0\n"
    where = f"open({file!r}, 'w')" if file else "sys.stdout"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\n{start}"
        f"if rank == 0:\n    {where}.write({text!r})\nsys.exit({code})\n"
    )
    path.chmod(0o755)
    return path
