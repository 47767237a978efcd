"""Models of what a setting costs, which the strategies share."""
