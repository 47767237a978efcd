"""The site: a directory in which an administrator keeps what all users of a machine share.

It holds the folders that a user's own configuration has (``clusters``, ``spaces``, ``apps``,
``figures``), ``site.toml`` and ``trust.toml``. It is ``$AUTOTUNE_SITE`` if that is set, else
``autotune`` in each directory of ``$XDG_CONFIG_DIRS`` (default ``/etc/xdg``). A user's own files
come before the site's, and the site's before the shipped ones.

Definitions decide what is started, so a directory that other users can change is refused.
``$AUTOTUNE_SITE`` is the user's word: its owner may be anybody, such as the account that installs
software.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from autotune.errors import UsageError
from runner.files import MIB, paths, read_text
from runner.files.trusted_path import Step, open_to_others, weakness
from runner.passwords import has_password

VARIABLE = "AUTOTUNE_SITE"
FILE = "site.toml"


def site_directories() -> list[Path]:
    """The directories of the site that exist, the first one before the others.

    Raises UsageError if ``$AUTOTUNE_SITE`` is no directory, or if other users can change one.
    """
    variable = os.environ.get(VARIABLE, "")
    if variable:
        return [_directory_of_variable(variable)]
    listed = os.environ.get("XDG_CONFIG_DIRS", "") or "/etc/xdg"
    candidates = [Path(part) / "autotune" for part in listed.split(":") if part.startswith("/")]
    return [directory for directory in candidates if _is_trusted_directory(directory)]


def site_store() -> str:
    """The results database that the site names, or "".

    Raises UsageError for a file that cannot be read, has mistakes, or holds a password.
    """
    for directory in site_directories():
        file = directory / FILE
        if not paths.is_file(file):
            continue
        # Few machines have such a file, and every command that opens a database comes here.
        from autotune.config.site_file import read_site

        site = read_site(_text(file), str(file))
        if has_password(site.store):
            raise UsageError(
                f"{file}: store holds a password, and all users can read it; write the URL without "
                "one, and let each user keep his password in ~/.pgpass",
                code="site.password",
            )
        if site.store:
            return site.store
    return ""


def guarded_files(name: str) -> list[Path]:
    """The files of that name in the directories of the site, which only its owner may change.

    Raises UsageError for a file that belongs to anybody but root and the owner of its directory, or
    that others may write.
    """
    files = [directory / name for directory in site_directories()]
    files = [file for file in files if paths.exists(file)]
    for file in files:
        owners = {0, file.parent.stat().st_uid}
        step = Step(file, file.lstat(), is_end=True)
        if step.state.st_uid not in owners or step.is_link or open_to_others(step):
            raise UsageError(
                f"{file}: expected a file of root or of the owner of {file.parent}, no link, that "
                "nobody else may write (chown, chmod go-w)",
                code="site.untrusted",
            )
    return files


def _text(file: Path) -> str:
    try:
        return read_text(file, MIB)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot read {file}: {reason}; expected a TOML file that all users may read",
            code="config.unreadable",
        ) from error


def _directory_of_variable(variable: str) -> Path:
    directory = Path(variable)
    try:
        mode = directory.stat().st_mode if directory.is_absolute() else 0
    except OSError:
        mode = 0
    if not stat.S_ISDIR(mode):
        raise UsageError(
            f"{VARIABLE}={variable}: no such directory; expected the absolute path of a directory "
            f"with clusters/, spaces/, apps/ or {FILE}; correct it or unset {VARIABLE}",
            code="site.missing",
        )
    if mode & stat.S_IWOTH:
        raise _untrusted(directory, "everybody may write it")
    return directory


def _is_trusted_directory(directory: Path) -> bool:
    """True for a directory that only root and this user may change; False if there is none."""
    if not paths.is_folder(directory):
        return False
    try:
        weak = weakness(directory)
    except OSError:
        return False
    if weak is not None:
        raise _untrusted(directory, str(weak))
    return True


def _untrusted(directory: Path, reason: str) -> UsageError:
    return UsageError(
        f"the site {directory}: {reason}, so other users could change what is started; correct its "
        f"owner and mode (chmod go-w), or name another directory in {VARIABLE}",
        code="site.untrusted",
    )
