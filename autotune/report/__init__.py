"""Reports: HTML pages with measurements and gains, and with lines to copy."""
