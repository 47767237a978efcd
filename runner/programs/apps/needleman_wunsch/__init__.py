"""Needleman-Wunsch: the global alignment of two DNA sequences (Cicotti 2011, chapter 6)."""
