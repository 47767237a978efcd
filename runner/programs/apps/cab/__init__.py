"""Programs that show what ranks gain that steal chunks (docs/reference/intranode.md)."""
