"""Programs that show the gain of stealing chunks for ranks (docs/reference/intranode.md)."""
