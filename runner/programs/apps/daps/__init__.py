"""Programs that show what ranks gain whose progress others make (docs/reference/daps.md)."""
