"""The threads that run tasks of any runtime: their CPUs, and their times by kind."""
