"""What is launched: programs to tune and to measure with."""
