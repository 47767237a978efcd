"""Measurement of settings: evaluator, run history, budget, output; nothing here searches."""
