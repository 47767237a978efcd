"""The figure that a program prints: its position, number and unit."""
