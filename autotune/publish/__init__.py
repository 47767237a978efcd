"""Publication: proven settings as files that an MPI library loads, tested before installation."""
