"""The genetic search.

``strategy`` is for studies and for Optuna; ``population``, ``assisted_population``, ``operators``.
"""
