"""The check of one launch: what is wrong with a line, and the right line."""
