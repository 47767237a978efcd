"""Open MPI: its adapter, parameters, tables, and the values that it shows."""
