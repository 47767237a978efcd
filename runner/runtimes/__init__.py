"""What is launched: runtimes whose settings are tuned."""
