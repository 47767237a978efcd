"""Studies: search, race, pruning, proof, recommendation, and their results."""
