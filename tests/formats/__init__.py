"""Files of versions that are kept, and what later versions must still read of them."""
