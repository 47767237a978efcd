"""The launched programs, for tuning and measuring."""
