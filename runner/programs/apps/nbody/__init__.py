"""Barnes-Hut: gravity of bodies in three dimensions (docs/reference/mcoll.md)."""
