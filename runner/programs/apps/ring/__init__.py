"""A message that circulates in a ring (Cicotti 2011, 3.8): latency and bandwidth of a runtime."""
