"""Buffers of the operations.  Not numpy's: its import takes half of the time of a short launch."""

from __future__ import annotations


def message(size: int) -> bytearray:
    """``size`` bytes.  The pages are written, not only allocated: untouched pages all share the
    kernel's one zero page."""
    return bytearray(b"\x01") * size
