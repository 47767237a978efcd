"""Programs with one parametrised communication pattern each, from which predictions learn."""
