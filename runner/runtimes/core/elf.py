"""A loader of relocatable object code for x86-64 Linux, without LLVM.

Importing LLVM takes 30 to 40 ms in every process, and what it does with an object file is little:
copy the sections into memory, and write addresses into them. This loader does that for objects with
plain code and data, as numba makes them. It refuses all else (:class:`NotUnderstood`): other
machines, other relocations, thread-local data, functions that choose an implementation when they
are loaded, addresses out of reach. Unwind tables are left out: compiled code throws nothing.

Memory is never writable and executable at the same time, and stays for the life of the process:
threads may still run the code when the interpreter ends.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_IDENT = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, the current version."""
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOTE, _NOBITS, _REL = 1, 2, 4, 7, 8, 9
_UNWIND = 0x70000001
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_ABSOLUTE, _FIRST_RESERVED = 0xFFF1, 0xFF00
_PLAIN_SYMBOLS = (0, 1, 2, 3)
"""Kinds without a type, data, function and section."""
_MOST = 1 << 26
"""Largest code in bytes."""
_KINDS = {
    0: ("", False),
    1: ("<Q", False),
    2: ("<i", True),
    4: ("<i", True),
    10: ("<I", False),
    11: ("<i", False),
    24: ("<q", True),
}
"""Relocations: format, and whether the value is relative to its own place.

NONE, 64, PC32, PLT32, 32, 32S and PC64 of the System V ABI.
"""


class NotUnderstood(Exception):
    """The object needs something that this loader does not do; says what."""


class _Section:
    """A section in memory; ``at``: its offset there."""

    __slots__ = ("align", "at", "data", "flags", "size")

    def __init__(self, data: bytes, size: int, flags: int, align: int) -> None:
        self.data, self.size, self.flags, self.align = data, size, flags, align
        self.at = 0


class Image:
    """The code and data of an object file in executable memory.

    ``find``: address of a function outside the object; it raises ``KeyError`` for an unknown one.
    Raises :class:`NotUnderstood` for an object that this loader cannot load, also if it is damaged.
    """

    def __init__(self, data: bytes, find: Callable[[str], int]) -> None:
        self._data, self._find = data, find
        if sys.platform != "linux":
            raise NotUnderstood(f"a system other than Linux ({sys.platform})")
        try:
            self._load()
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise NotUnderstood(f"a damaged object ({error})") from None

    def address(self, name: str) -> int:
        """The address of a function of the object. Raises ``KeyError`` for an unknown one."""
        return self._defined[name]

    def _load(self) -> None:
        head = _HEADER.unpack_from(self._data)
        if not head[0].startswith(_IDENT) or head[1:3] != (_RELOCATABLE, _X86_64):
            raise NotUnderstood("an object file that is not for x86-64 Linux")
        place, size, count = head[6], head[11], head[12]
        if size != _SECTION.size:
            raise NotUnderstood(f"section headers of {size} bytes")
        heads = [_SECTION.unpack_from(self._data, place + n * size) for n in range(count)]
        self._sections = {n: s for n, h in enumerate(heads) if (s := self._section(h))}
        whole, borders = self._laid_out()
        image = bytearray(whole)
        for section in self._sections.values():
            image[section.at : section.at + len(section.data)] = section.data
        self._base = _allocate(whole)
        self._defined: dict[str, int] = {}
        for head in heads:
            if head[1] == _SYMTAB:
                self._symbols(heads, head)
        for head in heads:
            if head[1] in (_RELA, _REL) and head[7] in self._sections:
                self._relocate(image, heads, head)
        ctypes.memmove(self._base, bytes(image), whole)
        code, constants = borders
        _protect(self._base, code, mmap.PROT_READ | mmap.PROT_EXEC)
        _protect(self._base + code, constants - code, mmap.PROT_READ)

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise NotUnderstood("a damaged object (a section ends behind the file)")
        return self._data[offset : offset + size]

    def _section(self, head: tuple[int, ...]) -> _Section | None:
        """What is to be loaded of a section; None for nothing."""
        _, kind, flags, _, offset, size, _, _, align, _ = head
        if not flags & _ALLOC or kind in (_UNWIND, _NOTE):
            return None
        if flags & _THREAD_LOCAL or kind not in (_PROGBITS, _NOBITS):
            raise NotUnderstood(f"a section of type {kind:#x} with flags {flags:#x}")
        align = max(1, align)
        if align & (align - 1) or align > mmap.PAGESIZE or size > _MOST:
            raise NotUnderstood(f"a section of {size} bytes aligned to {align}")
        return _Section(b"" if kind == _NOBITS else self._bytes(offset, size), size, flags, align)

    def _laid_out(self) -> tuple[int, tuple[int, int]]:
        """Give each section its place: code, constants, variables, each from a page on.

        Returns the size of all, and the ends of the code and of the constants.
        """
        end, borders = 0, []
        for wanted in (_EXECUTE, 0, _WRITE):
            for section in self._sections.values():
                if section.flags & (_EXECUTE | _WRITE) == wanted:
                    section.at = _up(end, section.align)
                    end = section.at + section.size
            end = _up(end, mmap.PAGESIZE)
            borders.append(end)
        if any(s.flags & _EXECUTE and s.flags & _WRITE for s in self._sections.values()):
            raise NotUnderstood("code that can be written")
        if not 0 < end <= _MOST:
            raise NotUnderstood(f"{end} bytes of code and data")
        return end, (borders[0], borders[1])

    def _symbols(self, heads: list[tuple[int, ...]], table: tuple[int, ...]) -> None:
        """Note the addresses of the functions that the object offers."""
        for number in range(table[5] // _SYMBOL.size):
            name, info, _, section, value, _ = self._symbol(table, number)
            if info >> 4 and info & 15 in _PLAIN_SYMBOLS and section in self._sections:
                text = self._text(heads[table[6]], name)
                self._defined[text] = self._base + self._sections[section].at + value

    def _symbol(self, table: tuple[int, ...], number: int) -> tuple[int, ...]:
        if not 0 <= number < table[5] // _SYMBOL.size:
            raise NotUnderstood("a damaged object (a symbol that is not there)")
        return _SYMBOL.unpack_from(self._data, table[4] + number * _SYMBOL.size)

    def _text(self, table: tuple[int, ...], offset: int) -> str:
        begin = table[4] + offset
        return self._data[begin : self._data.index(b"\0", begin)].decode("latin-1")

    def _relocate(
        self, image: bytearray, heads: list[tuple[int, ...]], head: tuple[int, ...]
    ) -> None:
        """Write the addresses that a section wants."""
        if head[1] == _REL:
            raise NotUnderstood("relocations without addend")
        section, table = self._sections[head[7]], heads[head[6]]
        values: dict[int, int] = {}
        for offset, kind, symbol, addend in _RELOCATION.iter_unpack(self._bytes(head[4], head[5])):
            if kind not in _KINDS:
                raise NotUnderstood(f"relocation {kind}")
            form, relative = _KINDS[kind]
            if not form:
                continue
            if symbol not in values:
                values[symbol] = self._value(heads, table, symbol)
            if offset + struct.calcsize(form) > section.size or len(section.data) < section.size:
                raise NotUnderstood("a damaged object (a relocation outside of its section)")
            place = section.at + offset
            value = values[symbol] + addend - (self._base + place if relative else 0)
            if kind == 1:
                value %= 1 << 64
            try:
                struct.pack_into(form, image, place, value)
            except struct.error:
                raise NotUnderstood("an address that is out of reach") from None

    def _value(self, heads: list[tuple[int, ...]], table: tuple[int, ...], number: int) -> int:
        """The address of a symbol."""
        name, info, _, section, value, _ = self._symbol(table, number)
        if info & 15 not in _PLAIN_SYMBOLS:
            raise NotUnderstood(f"a symbol of type {info & 15}")
        if section in self._sections:
            return self._base + self._sections[section].at + value
        if section == _ABSOLUTE:
            return value
        if section != 0 or number == 0:
            raise NotUnderstood(f"a symbol in section {section:#x}")
        text = self._text(heads[table[6]], name)
        try:
            return self._find(text)
        except KeyError:
            raise NotUnderstood(f"{text}, which this process does not have") from None


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _allocate(size: int) -> int:
    """Address of private memory that nothing frees."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = function(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise NotUnderstood(f"no memory for {size} bytes (error {ctypes.get_errno()})")
    return int(address)


def _protect(address: int, size: int, how: int) -> None:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if size and function(address, size, how) != 0:
        raise NotUnderstood(f"memory that cannot be made executable (error {ctypes.get_errno()})")
