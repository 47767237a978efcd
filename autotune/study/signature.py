"""The key in a user's home that signs requests to the user's own workers.

HMAC-SHA256 over the whole request.  Whoever can read the key can have the user's workers run
anything, so it is 0600 and refused otherwise; whoever can only write to the results database has
no use for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import UsageError
from autotune.study.worker_request import WorkerRequest
from runner import places

_HEX = re.compile(r"[0-9a-f]{64}\n?")
_MOST = 256


@dataclass(frozen=True)
class WorkerKey:
    """A secret of 32 bytes; it is never printed."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits by which requests name their key; they tell nothing of it."""
        return hashlib.sha256(b"autotune worker key\0" + self.secret).hexdigest()[:16]

    def sign(self, request: WorkerRequest, study: str) -> WorkerRequest:
        """The request with the signature that makes it one of this key's, for one study (hash)."""
        return dataclasses.replace(request, key=self.id, signature=self._code(request, study))

    def signed(self, request: WorkerRequest, study: str) -> bool:
        """Whether the signature is that of this key, for this request and this study."""
        code = request.signature.encode(errors="surrogatepass")
        return hmac.compare_digest(self._code(request, study).encode(), code)

    def _code(self, request: WorkerRequest, study: str) -> str:
        return hmac.new(self.secret, request.signed_text(study), hashlib.sha256).hexdigest()


def key_path() -> Path:
    """``worker.key`` beside the results database's usual place."""
    return places.data("worker.key")


def read_key(path: Path | None = None) -> WorkerKey | None:
    """The key of this user; None where there is none yet.

    Raises UsageError for a file that others may read or own, that is a link, or that holds no key.
    """
    place = path or key_path()
    try:
        text = _private_text(place)
    except FileNotFoundError:
        return None
    except OSError as problem:
        what = "it is a symbolic link" if problem.errno == errno.ELOOP else problem.strerror
        raise _unusable(place, f"{what}") from None
    if not _HEX.fullmatch(text):
        raise _unusable(place, "it does not hold 64 hexadecimal digits")
    return WorkerKey(bytes.fromhex(text.strip()))


def make_key(path: Path | None = None) -> WorkerKey:
    """The key of this user, made where there is none.  Raises UsageError as :func:`read_key`."""
    place = path or key_path()
    known = read_key(place)
    if known is not None:
        return known
    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="ascii") as file:  # noqa: PTH123 (a descriptor)
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(fd)
        # Another process may be as far: the first one's key counts.
        with contextlib.suppress(FileExistsError):
            os.link(part, place)
    except OSError as problem:
        raise UsageError(
            f"cannot write the key file {place}, with which requests to workers are "
            f"signed: {problem.strerror}; make its directory writable, or set XDG_DATA_HOME"
        ) from None
    finally:
        part.unlink(missing_ok=True)
    made = read_key(place)
    if made is None:
        raise UsageError(f"the key file {place} was removed while it was written; try again")
    return made


def _private_text(place: Path) -> str:
    fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(fd, "rb") as file:  # noqa: PTH123 (a descriptor)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _unusable(place, "it is not a regular file")
        if found.st_uid != os.geteuid():
            raise _unusable(place, f"it belongs to user {found.st_uid}, not to {os.geteuid()}")
        if found.st_mode & 0o077:
            raise _unusable(
                place, f"other users may access it (mode {stat.S_IMODE(found.st_mode):04o})"
            )
        return file.read(_MOST).decode("ascii", "replace")


def _unusable(place: Path, why: str) -> UsageError:
    return UsageError(
        f"the key file {place}, with which requests to workers are signed, cannot be "
        f"used: {why}; expected a file of your own with mode 0600. If others may have "
        "read it, remove it: the next autotune search --join makes a new key, and "
        "workers of older studies need --trust"
    )
