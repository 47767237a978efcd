"""The rules of the check: a module for each subject."""
