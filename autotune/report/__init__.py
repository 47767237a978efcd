"""Pages for people: what was measured, what was gained, and lines to copy."""
