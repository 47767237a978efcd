"""The launched runtimes, whose settings are tuned."""
