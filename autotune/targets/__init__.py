"""What is tuned: a program with input, ranks, MPI library and cluster, and how it is recognised."""
