"""Worker trust: whether a worker may carry out what a study in the results database requests.

Whoever can write to the database can request any program. A request is trusted if it is signed with
the key in this user's home, or if every role that may write studies is named in ``trust.toml``:
this user's own, or the site's for a database that this user's does not name.

A key signs requests to the user's own workers, by HMAC-SHA256 over the whole request. Whoever can
read the key can make the user's workers run anything, so its mode must be 0600, and any other is
refused. The key is of no use to those who can only write to the results database.
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
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from autotune.config.find import user_config
from autotune.config.site import guarded_files
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.store import Store, StudyRecord
from autotune.workers.worker_request import WorkerRequest, requests_of, with_request
from runner import files
from runner.errors import RunnerError
from runner.files import read_text
from runner.files.private_files import private_folder, read_private, write_private
from runner.files.trusted_path import weakness
from runner.passwords import mask_words

_LARGEST = 1 << 16
_PORT = 5432


class TrustedDatabase(BaseModel):
    """A database on a server, and the roles whose requests this user's workers carry out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    roles: tuple[str, ...] = Field(min_length=1)


class TrustFile(BaseModel):
    """The content of ``trust.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    database: tuple[TrustedDatabase, ...] = ()


@dataclass(frozen=True)
class TrustVerdict:
    """The request that a worker carries out, whether it is trusted, and the reason."""

    request: WorkerRequest
    trusted: bool
    why: str

    @property
    def words(self) -> str:
        """The command that a worker would run; control characters are written as escapes."""
        search, cwd = self.request.search, self.request.cwd
        lines = [f"directory: {cwd!r}", f"command:   {['autotune', *search.words()]!r}"]
        if search.target.program:
            lines.append(f"program:   {list(search.target.program)!r}")
        else:
            lines.append(
                "program:   the command of the application --app, whose file is looked for in "
                f"{cwd + '/configs/apps'!r} first"
            )
        if search.target.before:
            lines.append(f"before:    {list(search.target.before)!r}")
        return "".join(f"\n  {line}" for line in lines)


def sign(store: Store, study: StudyRecord, request: WorkerRequest) -> None:
    """Store this user's own request, signed; the key is made at the first use."""
    own_request = make_key().sign(request, study.hash)
    store.change_request(study.id, lambda before: with_request(before, own_request))


def judge_request(store: Store, study: StudyRecord) -> TrustVerdict | None:
    """The request of a study, preferably one signed with this user's key; None if there is none.

    Raises UsageError for damaged requests, and for a key or a ``trust.toml`` that others can read
    or write.
    """
    requests = requests_of(study.request)
    if not requests:
        return None
    key = read_key()
    for request in reversed(requests):
        if key is not None and key.is_author(request, study.hash):
            return TrustVerdict(request, True, "it is signed with your key")
    newest = requests[-1]
    is_trusted, roles = _roles(store)
    if is_trusted:
        return TrustVerdict(newest, True, roles)
    if not newest.signature:
        why = "it is not signed"
    elif key is None:
        why = "it is signed, but you have no key"
    elif newest.key == key.id:
        why = (
            "its signature is wrong: the study was changed, or the signature belongs to "
            "another study"
        )
    else:
        why = "it is signed with another key than yours"
    return TrustVerdict(newest, False, why + roles)


def _roles(store: Store) -> tuple[bool, str]:
    """Whether every role that may write studies is trusted by name, and the reason in words."""
    trusted = trusted_roles(store.url)
    if trusted is None:
        return False, ""
    writers = store.writers()
    others = sorted(writers - trusted.roles)
    if others or not writers:
        names = ", ".join(map(repr, others[:8])) + (" and more" if len(others) > 8 else "")
        return False, f"; {trusted.file} does not name {names or 'a role'}, who may write studies"
    return True, f"{trusted.file} names all roles that may write studies"


def trust_path() -> Path:
    """Path of ``trust.toml`` in this user's configuration directory."""
    return user_config() / "trust.toml"


@dataclass(frozen=True)
class TrustedRoles:
    """The roles that a ``trust.toml`` names for a database."""

    roles: frozenset[str]
    file: Path


def trusted_roles(url: URL) -> TrustedRoles | None:
    """The roles that are trusted for a database on a server; None if no file names the database.

    This user's own file decides for a database that it names, and else the site's first one that
    does. Raises UsageError for a damaged ``trust.toml`` or one that others control.
    """
    if url.get_backend_name() != "postgresql":
        return None
    own = _own_roles(url)
    if own is not None:
        return TrustedRoles(own, trust_path())
    for file in guarded_files("trust.toml"):
        try:
            text = read_text(file, _LARGEST)
        except (OSError, UnicodeDecodeError) as problem:
            raise _unreadable(file, problem) from None
        roles = roles_for(text, str(file), url)
        if roles is not None:
            return TrustedRoles(roles, file)
    return None


def _unreadable(file: Path, problem: OSError | UnicodeDecodeError) -> UsageError:
    reason = getattr(problem, "strerror", None) or problem
    return UsageError(f"cannot read {file}: {reason}", code="trust.unreadable")


def _own_roles(url: URL) -> frozenset[str] | None:
    """The roles in this user's own file; None without a file, or if it does not name a database."""
    path = trust_path()
    try:
        weak = weakness(path)
        text = read_text(path, _LARGEST)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, problem) from None
    if weak is not None:
        raise UsageError(
            f"{path} lists whose programs are run here, but {weak}; expected a file of your own "
            "(or root's), in folders of the same kind, that nobody else may write: chmod go-w "
            f"{shlex.quote(str(weak.step.place))}",
            code="file.writable_by_others",
        )
    return roles_for(text, str(path), url)


def roles_for(text: str, origin: str, url: URL) -> frozenset[str] | None:
    """The roles that the text of a ``trust.toml`` names for a database; raises UsageError."""
    trust_file = read_toml(text, origin, TrustFile)
    roles = [d.roles for d in trust_file.database if _place(_url(d.url, origin)) == _place(url)]
    return frozenset(name for group in roles for name in group) if roles else None


def _url(text: str, origin: str) -> URL:
    try:
        url = make_url(text)
        if url.get_backend_name() in ("postgresql", "postgres") and _place(url)[2]:
            return url
    except (ArgumentError, ValueError):
        pass
    raise UsageError(
        f"{origin}: url = {mask_words([text])[0][:200]!r} is not a database; expected "
        "postgresql://HOST/DATABASE",
        code="trust.url",
    )


def _place(url: URL) -> tuple[str, int, str]:
    """Host, port and name of a database; users, passwords and options make no difference."""
    host = url.host or url.query.get("host") or ""
    port = url.port or url.query.get("port") or _PORT
    return str(host), int(str(port)), url.database or ""


_HEX = re.compile(r"[0-9a-f]{64}\n?")
_MOST = 256


@dataclass(frozen=True)
class WorkerKey:
    """A secret of 32 bytes; it is never printed."""

    secret: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits with which requests name their key; they reveal nothing of it."""
        return hashlib.sha256(b"autotune worker key\0" + self.secret).hexdigest()[:16]

    def sign(self, request: WorkerRequest, study: str) -> WorkerRequest:
        """The request, signed with this key for one study (hash)."""
        return dataclasses.replace(request, key=self.id, signature=self._code(request, study))

    def is_author(self, request: WorkerRequest, study: str) -> bool:
        """Whether the signature is that of this key, for this request and this study."""
        code = request.signature.encode(errors="surrogatepass")
        return hmac.compare_digest(self._code(request, study).encode(), code)

    def _code(self, request: WorkerRequest, study: str) -> str:
        return hmac.new(self.secret, request.signed_text(study), hashlib.sha256).hexdigest()


def key_path() -> Path:
    """Path of ``worker.key``, beside the usual place of the results database."""
    return files.data("worker.key")


def read_key(path: Path | None = None) -> WorkerKey | None:
    """The key of this user; None if there is none yet.

    Raises UsageError for a file that others may read or own, for a link, and for a file that holds
    no key.
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
    """The key of this user, made if there is none; raises UsageError as :func:`read_key`."""
    place = path or key_path()
    key = read_key(place)
    if key is not None:
        return key
    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        private_folder(place.parent)
        write_private(part, secrets.token_hex(32) + "\n")
        # Another process may do the same; the key that is linked first counts.
        with contextlib.suppress(FileExistsError):
            os.link(part, place)
    except (OSError, RunnerError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise UsageError(
            f"cannot write the key file {place}, with which requests to workers are "
            f"signed: {why}; make its directory writable, or set XDG_DATA_HOME",
            code="trust.key_file",
        ) from None
    finally:
        part.unlink(missing_ok=True)
    new_key = read_key(place)
    if new_key is None:
        raise UsageError(
            f"the key file {place} was removed while it was written; try again",
            code="trust.key_file",
        )
    return new_key


def _private_text(place: Path) -> str:
    text = read_private(place, _MOST).decode("ascii", "replace")
    weak = weakness(place.parent)
    if weak is not None:
        raise _unusable(place, f"{weak}")
    return text


def _unusable(place: Path, why: str) -> UsageError:
    return UsageError(
        f"the key file {place}, with which requests to workers are signed, cannot be "
        f"used: {why}; expected a file of your own with mode 0600. If others may have "
        "read it, remove it: the next autotune search --join makes a new key, and "
        "workers of studies that were begun before need --trust",
        code="trust.key_file",
    )
