"""A scheduler of MATE on the compiled core."""
