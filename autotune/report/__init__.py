"""Reports: HTML pages with what was measured and gained, and with lines to copy."""
