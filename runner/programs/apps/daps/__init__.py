"""Programs that show the gain of ranks whose progress others make (docs/reference/daps.md)."""
