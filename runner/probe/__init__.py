"""A small MPI program for launches that show something: what is in force, how long a start takes.

With mpi4py it is one of :mod:`runner.programs.micro`. Without, its C source is compiled with the
``mpicc`` of the library.
"""
