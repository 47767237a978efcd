"""Builders of pages: what the documentation takes from the code."""
