"""The check of graphs: what is read and written, in which order, and what no order holds."""
