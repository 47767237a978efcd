"""Workers of a study: what they are asked to do, and whether they may do it."""
