"""The threads that run tasks, whatever the runtime: their CPUs, and where their time goes."""
