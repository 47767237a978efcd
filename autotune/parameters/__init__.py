"""Parameters of MPI libraries and of what lies below: which exist, who sets them, and faults."""
