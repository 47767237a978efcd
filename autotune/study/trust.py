"""Whether a worker may carry out what a study of the results database asks for.

Whoever can write there can ask for any program.  A request is trusted where it is signed with the
key in this user's home, or where every role that may write studies is named in this user's own
``trust.toml``.
"""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from autotune.config.find import user_config
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.store import Store, Study
from autotune.study.signature import make_key, read_key
from autotune.study.worker_request import WorkerRequest, added, requests_of
from runner.bounded import open_regular

_LARGEST = 1 << 16
_PORT = 5432


class Database(BaseModel):
    """A database on a server, and the roles whose requests this user's workers carry out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    roles: tuple[str, ...] = Field(min_length=1)


class TrustFile(BaseModel):
    """The content of ``trust.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    database: tuple[Database, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The request that a worker carries out, whether it is trusted, and why or why not."""

    request: WorkerRequest
    trusted: bool
    why: str

    @property
    def words(self) -> str:
        """What a worker would run; characters that a terminal acts on are written as escapes."""
        asked, cwd = self.request.search, self.request.cwd
        lines = [f"directory: {cwd!r}", f"command:   {['autotune', *asked.words()]!r}"]
        if asked.target.program:
            lines.append(f"program:   {list(asked.target.program)!r}")
        else:
            lines.append(
                "program:   the command of the application --app, whose file is looked for in "
                f"{cwd + '/configs/apps'!r} first"
            )
        return "".join(f"\n  {line}" for line in lines)


def sign(store: Store, study: Study, request: WorkerRequest) -> None:
    """Store a request of this user's own, signed; the first time a key is made for it."""
    signed = make_key().sign(request, study.hash)
    store.change_request(study.id, lambda before: added(before, signed))


def judge(store: Store, study: Study) -> Verdict | None:
    """The request of a study, preferably one that is signed with this user's key; None for none.

    Raises UsageError for damaged requests, and for a key or a ``trust.toml`` that others can read
    or write.
    """
    requests = requests_of(study.request)
    if not requests:
        return None
    key = read_key()
    for request in reversed(requests):
        if key is not None and key.signed(request, study.hash):
            return Verdict(request, True, "it is signed with your key")
    newest = requests[-1]
    trusted, roles = _roles(store)
    if trusted:
        return Verdict(newest, True, roles)
    if not newest.signature:
        why = "it is not signed (written by an older version of autotune, or by somebody else)"
    elif key is None:
        why = "it is signed, but you have no key"
    elif newest.key == key.id:
        why = (
            "its signature is wrong: the study was changed, or the signature belongs to "
            "another study"
        )
    else:
        why = "it is signed with another key than yours"
    return Verdict(newest, False, why + roles)


def _roles(store: Store) -> tuple[bool, str]:
    """Whether everybody who may write studies is trusted by name; in words."""
    named = trusted_roles(store.url)
    if named is None:
        return False, ""
    writers = store.writers()
    others = sorted(writers - named)
    if others or not writers:
        listed = ", ".join(map(repr, others[:8])) + (" and more" if len(others) > 8 else "")
        return False, f"; {trust_path()} does not name {listed or 'a role'}, who may write studies"
    return True, f"{trust_path()} names all roles that may write studies"


def trust_path() -> Path:
    """``trust.toml`` in this user's configuration directory."""
    return user_config() / "trust.toml"


def trusted_roles(url: URL) -> frozenset[str] | None:
    """The roles that ``trust.toml`` names for a database; None where it names none, or the database
    is a file.

    Raises UsageError for a damaged file, or one that others may write.
    """
    if url.get_backend_name() != "postgresql":
        return None
    path = trust_path()
    try:
        with open_regular(path, _LARGEST) as file:
            found = os.fstat(file.fileno())
            text = file.read(_LARGEST).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"cannot read {path}: {reason}") from None
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"{path} lists whose programs are run here, but others may write it; expected "
            "a file of your own (or root's) that nobody else may write: chmod 644 "
            f"{shlex.quote(str(path))}"
        )
    return roles_for(text, str(path), url)


def roles_for(text: str, origin: str, url: URL) -> frozenset[str] | None:
    """The roles that the content of a ``trust.toml`` names for a database; raises UsageError."""
    known = read_toml(text, origin, TrustFile)
    roles = [d.roles for d in known.database if _place(_url(d.url, origin)) == _place(url)]
    return frozenset(name for group in roles for name in group) if roles else None


def _url(text: str, origin: str) -> URL:
    try:
        url = make_url(text)
        if url.get_backend_name() in ("postgresql", "postgres") and _place(url)[2]:
            return url
    except (ArgumentError, ValueError):
        pass
    raise UsageError(
        f"{origin}: url = {text[:200]!r} is not a database; expected postgresql://HOST/DATABASE"
    )


def _place(url: URL) -> tuple[str, int, str]:
    """Host, port and name of a database.  Users, passwords and options do not tell them apart."""
    host = url.host or url.query.get("host") or ""
    port = url.port or url.query.get("port") or _PORT
    return str(host), int(str(port)), url.database or ""
