"""Models of the cost of a setting, shared by the strategies."""
