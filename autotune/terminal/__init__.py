"""Terminal output: tables, progress lines, results.  Python scripts may use it, too."""
