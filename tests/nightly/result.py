"""What a part came to, and where it is kept so that it is not run again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.nightly.parts import ROOT, Part


@dataclass(frozen=True)
class Result:
    """Counts of one part; ``tests`` are inputs where it fuzzes."""

    name: str
    row: str
    tests: int
    passed: int
    failed: int
    skipped: int
    seconds: float
    log: str


def read_result(part: Part, code: int, output: str, seconds: float, log: str) -> Result:
    """Counts from what a command printed; what ended badly without a count is one failure."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if part.kind == "pytest":
        last = next((t for t in reversed(output.splitlines()) if re.search(r" in [\d.]+s", t)), "")
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed)", last):
            key = {"xfailed": "passed", "error": "failed", "errors": "failed"}.get(word, word)
            counts[key] += int(number)
    elif part.kind == "simulation":
        counts["passed"] = int(code == 0)
    else:
        found = re.findall(r"(\d+) (?:inputs )?tried.*?(\d+) crash", output)
        tried, crashes = (sum(int(f[n]) for f in found) for n in (0, 1))
        counts.update(passed=tried - crashes, failed=crashes)
    if code and not counts["failed"]:
        counts["failed"] = 1
    if not sum(counts.values()):
        counts["failed"] = 1
    tests = sum(counts.values())
    return Result(part.name, part.row, tests, **counts, seconds=round(seconds, 1), log=log)


def code_of_now() -> str:
    """The commit; with changes that are not committed, a digest of these as well."""
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


def _write(file: Path, content: object) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(content, indent=1))
    temporary.replace(file)


class Results:
    """The finished parts of one state of the code, one file each below a folder."""

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder / code
        self.folder.mkdir(parents=True, exist_ok=True)

    def nodes(self, collect: Callable[[], list[str]]) -> list[str]:
        """Names of the long tests: collected once for each state of the code."""
        file = self.folder / "tests.json"
        if not file.exists():
            print("collecting the tests ...", flush=True)
            _write(file, collect())
        found: list[str] = json.loads(file.read_text())
        return found

    def log(self, part: Part) -> Path:
        """The file for what the command prints."""
        return self.folder / f"{part.slug}.log"

    def get(self, part: Part) -> Result | None:
        """The result of a part, None if it has none (or a damaged one)."""
        try:
            return Result(**json.loads(self._file(part).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def put(self, part: Part, result: Result) -> None:
        """Keep a result; a kill leaves the whole file or none."""
        _write(self._file(part), dataclasses.asdict(result))

    def _file(self, part: Part) -> Path:
        return self.folder / f"{part.slug}.json"
