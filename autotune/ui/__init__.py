"""The web page over a results database (``autotune ui``): read-only, local, behind a token.

Only :mod:`autotune.ui.server` is imported by the command, and only when it is called, because the
web framework is an optional package (``pip install "mpi-autotune[ui]"``).
"""
