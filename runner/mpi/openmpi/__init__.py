"""Open MPI: its adapter, parameters, tables and what it shows."""
