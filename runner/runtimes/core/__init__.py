"""Compiled code without a compiler on the user's machine: kernels, and the core of the runtimes."""
