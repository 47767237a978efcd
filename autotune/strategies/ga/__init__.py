"""The genetic search and its operators."""
