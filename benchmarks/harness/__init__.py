"""The harness of the benchmarks: a table of command lines, run in blocks, and what they show.

- :mod:`.table` reads a claim, ``benchmarks/claims/NAME.toml``: lines, and what they range over.
- :mod:`.launches` makes a launch of a line; C programs are compiled on the spot.
- :mod:`.bench` runs launches until they are valid, and keys in blocks of random order; runs that
  are kept in a file are not run again.
- :mod:`.contest` tunes contestants with as many settings each.
- :mod:`.figures` are ratios with intervals, and the rows of a table.
- :mod:`.searches` are rows of ``autotune search``, kept in files when they are decided.
- ``simulation.py`` runs simulated studies on all cores.

``python -m benchmarks.claim NAME`` runs a claim. Benchmarks that cannot be said in a table take the
parts that they need. Nothing here needs more than numpy unless a line names an application.
"""
