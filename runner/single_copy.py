"""Whether the kernel lets one process copy the memory of another (CMA, ``process_vm_readv``).

MPI libraries send large messages within a node by it. Yama, a container's filter of system calls,
missing capabilities, or name spaces may forbid it. Two children of this process try it as two ranks
would: the one that is read allows every process to trace it, as the libraries do.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

SYS_PTRACE = 1 << 19
"""The bit of the capability with which a process may read every other one."""
_SET_PTRACER, _ANY = 0x59616D61, -1
_PATIENCE_S = 2


class _Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def kernel_copy_works() -> bool | None:
    """Whether one child of this process can read the memory of another; None: it is not known."""
    try:
        system = ctypes.CDLL(None, use_errno=True)
        read, trace = system.process_vm_readv, system.prctl
    except (OSError, AttributeError):
        return None
    source = ctypes.create_string_buffer(b"ranks", 8)
    ready, told = os.pipe()
    owner = os.fork()
    if not owner:
        with suppress(BaseException):
            trace(_SET_PTRACER, ctypes.c_ulong(_ANY & (2**64 - 1)), 0, 0, 0)
            os.write(told, b"1")
            signal.alarm(_PATIENCE_S)
            signal.pause()
        os._exit(0)
    try:
        os.read(ready, 1)
        return _reads(read, owner, ctypes.addressof(source))
    finally:
        os.close(ready)
        os.close(told)
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)


def _reads(read: ctypes._NamedFuncPointer, owner: int, address: int) -> bool:
    """Whether a sibling of ``owner`` can read there what this process wrote before the fork."""
    reader = os.fork()
    if not reader:
        code = 1
        with suppress(BaseException):
            target = ctypes.create_string_buffer(8)
            mine = _Piece(ctypes.addressof(target), 5)
            theirs = _Piece(address, 5)
            read.restype = ctypes.c_ssize_t
            count = read(owner, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
            code = 0 if count == 5 and target.value == b"ranks" else 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0
