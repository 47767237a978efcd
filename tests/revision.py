"""The state of the code: results and records are kept by it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def code_of_now() -> str:
    """The commit; with changes that are not committed, a digest of these as well.

    ValueError where git cannot say it.
    """
    commit = _git("rev-parse", "--short=12", "HEAD").strip()
    changes = _git("diff", "HEAD") + _git("status", "--porcelain", "--untracked-files=all")
    if not changes:
        return commit
    names = _git("ls-files", "--others", "--exclude-standard").splitlines()
    digest = hashlib.sha256(changes.encode())
    for name in sorted(names):
        digest.update((ROOT / name).read_bytes())
    return f"{commit}+{digest.hexdigest()[:8]}"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
