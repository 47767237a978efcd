"""Programs of one communication pattern each, made from parameters: what predictions learn from."""
