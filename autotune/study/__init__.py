"""Studies: targets, search, race, ablation, proof, recommendation, and their results."""
