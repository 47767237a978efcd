"""Whether a program can be preloaded: a statically linked one has no dynamic loader to do it."""

from __future__ import annotations

import struct
from pathlib import Path

_INTERPRETER = 3  # PT_INTERP
_WIDE, _NARROW = 2, 1


def statically_linked(program: Path) -> bool:
    """True for an ELF executable without a dynamic loader; False for anything else (scripts)."""
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if len(head) < 52 or head[:4] != b"\x7fELF" or head[4] not in (_WIDE, _NARROW):
                return False
            order = "<" if head[5] == 1 else ">"
            offset_at, offset_form, sizes_at = (32, "Q", 54) if head[4] == _WIDE else (28, "I", 42)
            (offset,) = struct.unpack_from(order + offset_form, head, offset_at)
            size, count = struct.unpack_from(order + "HH", head, sizes_at)
            file.seek(offset)
            table = file.read(size * count)
        kinds = [struct.unpack_from(order + "I", table, at * size)[0] for at in range(count)]
    except (OSError, struct.error):
        return False
    return _INTERPRETER not in kinds
