"""An HTML page for the users of a cluster: the proven settings, and lines to copy."""

from __future__ import annotations

import html
import re
from pathlib import Path

from autotune.errors import WorkError
from autotune.publish.content import Content
from autotune.publish.formats.base import Loading, variables
from autotune.publish.formats.scripts import Sh, environment_after
from runner.mpi.library import Library

_LINES = re.compile(r'<pre id="settings">\n(.*?)</pre>', re.DOTALL)
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;"
    "margin:2rem auto;padding:0 1rem}pre{padding:1rem;overflow:auto;border:1px solid}"
    "th,td{text-align:left;padding:.2rem 1rem .2rem 0}"
)


class UserPage(Sh):
    """A page that works offline, light or dark.  Its lines are tested as copied by a user."""

    name = "html"
    summary = "page for a cluster's users, with lines to copy"
    suffix = ".html"
    comment = ("<!-- ", " -->")
    prologue = "<!DOCTYPE html>\n"
    guards = False

    def body(self, content: Content, library: Library) -> str:
        assignments = sorted(variables(content, library).items())
        rows = "".join(
            f"<tr><td>{html.escape(n)}</td><td>{html.escape(v)}</td></tr>\n" for n, v in assignments
        )
        lines = html.escape("".join(self.line(n, v) for n, v in assignments), quote=False)
        return (
            '<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>MPI defaults</title><style>{_STYLE}</style></head><body>\n"
            f"<h1>Faster defaults for {html.escape(library.family)} "
            f"{html.escape(library.version)}</h1>\n"
            "<p>These settings were measured with autotune; the evidence is in the source of this "
            "page.  Put the lines into your job script before <code>mpirun</code> or "
            f'<code>srun</code>:</p>\n<pre id="settings">\n{lines}</pre>\n'
            f"<table><tr><th>variable</th><th>value</th></tr>\n{rows}</table>\n"
            "<p>To go back to the defaults, leave the lines out.</p>\n</body></html>\n"
        )

    def live(self, path: Path, library: Library) -> Loading:
        match = _LINES.search(path.read_text(encoding="utf-8", errors="surrogateescape"))
        if match is None:
            raise WorkError(f"{path} has no lines to copy", code="publish.page_empty")
        base = {"PATH": "/usr/bin:/bin"}
        script = f"{html.unescape(match[1])}\nenv -0"
        return Loading(environment_after(["/bin/sh", "-euc", script], base, path))
