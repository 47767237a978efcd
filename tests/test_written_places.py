"""Every place in the sources that writes files: by the helpers, or for a reason that is given here.

:mod:`runner.files`, :mod:`runner.files.private_files` and :mod:`runner.files.open_folder` follow no
link and open nothing for writing that was not newly made. A new place has to use them, or to say
why not.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITERS = {
    "write_text",
    "write_bytes",
    "copy",
    "copy2",
    "copyfile",
    "copytree",
    "symlink_to",
    "touch",
}
HELPERS = {
    "runner/files/__init__.py",
    "runner/files/private_files.py",
    "runner/files/open_folder.py",
}
NEW = "in a new private folder (mkdtemp)"
REASONS = {
    "autotune/cli/streams.py": "the null device",
    "autotune/datasets/exchange.py": "made new ('xb') in a new private folder",
    "autotune/publish/formats/base.py": NEW,
    "autotune/publish/neutral.py": "copies by write_private",
    "autotune/store/migrate.py": "a backup, made new (exist_ok=False)",
    "autotune/testing": "suites for tests",
    "runner/programs/apps/jacobi3d/residuals.py": "a table of this source tree, for its developers",
    "runner/c_library.py": NEW,
    "runner/fresh_copy.py": "a copy of a folder, under a new name",
    "runner/launch.py": NEW,
    "runner/programs/micro/brought.py": NEW,
    "runner/mpi/hydra.py": "links in a private folder, compared afterwards",
    "runner/supervise/server.py": "a pipe",
    "runner/supervise/watches.py": NEW,
    "runner/testbed/delay_line.py": NEW + "; and a page of a testbed's private folder",
    "runner/trace/substitute/hook/autotune_counting.py": NEW + ", by the ranks",
}


def writes(path: Path) -> list[str]:
    """The calls in a source that write a file, but those of dictionaries and arrays."""
    found = []
    text = path.read_text(encoding="utf-8")
    if not re.search(rf"\b(open|fdopen|{'|'.join(WRITERS)})\s*\(", text):
        return []  # Parsing takes a hundred times as long.
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
        opened = name in ("open", "fdopen") and any(
            isinstance(text, str) and set(text) <= set("rwaxbt+") and set(text) & set("wax+")
            for text in texts
        )
        own = name != "copy" or ast.unparse(node.func).startswith("shutil.")
        if opened or (name in WRITERS and own and isinstance(node.func, ast.Attribute)):
            found.append(ast.unparse(node)[:80])
    return found


def test_every_place_that_writes_is_known() -> None:
    found: dict[str, list[str]] = {}
    for path in (*(ROOT / "autotune").rglob("*.py"), *(ROOT / "runner").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        name = "autotune/testing" if name.startswith("autotune/testing/") else name
        if name not in HELPERS and (calls := writes(path)):
            found.setdefault(name, []).extend(calls)
    assert found.keys() == REASONS.keys(), {n: found.get(n) for n in found.keys() ^ REASONS.keys()}
