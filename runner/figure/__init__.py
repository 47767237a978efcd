"""The figure that a program prints: where it stands, its number and its unit."""
