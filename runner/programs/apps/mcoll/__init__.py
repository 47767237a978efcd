"""Loops over the collectives of several objects (docs/reference/mcoll.md)."""
