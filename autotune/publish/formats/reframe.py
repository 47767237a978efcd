"""A test for ReFrame: the program of the proof, started with the published variables.

The text of the test depends on the setting alone.  When ReFrame loads the file, the test reads its
programs and their figures from the data in the file's own header: the evidence stays data.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from autotune.errors import WorkError
from autotune.publish.content import Content
from autotune.publish.formats.base import Loading
from autotune.publish.formats.scripts import Script
from autotune.publish.plain_figure import plain_figure
from runner.mpi.library import Library

_IMPORTS = """
import json
import pathlib
import re
import shlex
from collections.abc import Mapping
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn

"""
_TEST = '''
HEADER = re.findall("^# data[:+] (.*)$", pathlib.Path(__file__).read_text(), re.MULTILINE)
CHECKS = json.loads("".join(HEADER))["evidence"]["check"]
PROGRAMS = [check for check in CHECKS if check.get("program")]
BEGIN, END = "autotune-begin", "autotune-end"


@rfm.simple_test
class ProvenLaunch(rfm.RunOnlyRegressionTest):
    """A program of the proof with the published variables is right, and as fast as proven."""

    number = parameter(range(len(PROGRAMS)))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = None

    @run_after("init")
    def describe_launch(self):
        self.proof = check = PROGRAMS[self.number]
        program, *words = [shlex.quote(word) for word in check["program"]]
        self.descr = f"{check['app']} with the published setting"
        self.executable, self.executable_opts = program, words
        if check.get("stdin"):
            self.executable_opts += ["<", shlex.quote(check["stdin"])]
        self.num_tasks, self.env_vars = check["ranks"], VARIABLES
        folder = (check.get("origin") or {}).get("directory")
        self.prerun_cmds = [f"cd {shlex.quote(folder)}"] if folder else []
        self.prerun_cmds += [f"echo {BEGIN} $(date +%s.%N)"]
        self.postrun_cmds = [f"echo {END} $(date +%s.%N)"]
        if proven := check.get("proven"):
            seconds = proven["setting_s"]
            # A run that takes longer than the default took has lost the gain.
            slowest = proven["default_s"] / seconds - 1
            self.reference = {"*": {"seconds": (seconds, None, slowest, "s")}}

    @run_before("run")
    def add_launch_options(self):
        self.job.launcher.options += self.proof.get("options") or []

    def output(self):
        return (pathlib.Path(self.stagedir) / str(sn.evaluate(self.stdout))).read_text()

    @sanity_function
    def is_right(self):
        verify, output = self.proof.get("verify"), self.output()
        if not verify:
            return sn.assert_true(END in output, "the program did not end")
        if verify.startswith("json:"):
            last = [line for line in output.splitlines() if line.strip().startswith("{")][-1:]
            right = bool(last) and bool(json.loads(last[0]).get(verify[5:]))
        else:
            right = re.search(verify, output, re.MULTILINE) is not None
        return sn.assert_true(right, f"the output does not show {verify}")

    @performance_function("s")
    def seconds(self):
        output, proven = self.output(), self.proof.get("proven") or {}
        if scale := proven.get("scale"):
            number = plain_figure(self.proof, output)
            return scale / number if self.proof.get("metric_rate") else scale * number
        begin, end = (re.search(f"^{m} (.*)$", output, re.MULTILINE)[1] for m in (BEGIN, END))
        return float(end) - float(begin)
'''


class ReframeTest(Script):
    """A test for ``reframe -c FILE -r``: result, variables, and the time of the proof."""

    name = "reframe"
    summary = "test for ReFrame (reframe -c FILE -r): result and time of the proof"
    suffix = ".reframe.py"
    interpreters = ("python3",)
    guards = False

    def interpreter(self) -> str | None:
        return "python3"  # The text is read, not executed.

    def body(self, content: Content, library: Library) -> str:
        values = f"VARIABLES = {{\n{super().body(content, library)}}}\n"
        return f"{_IMPORTS}{values}\n\n{inspect.getsource(plain_figure)}\n{_TEST}"

    def line(self, name: str, value: str) -> str:
        return f'    "{name}": "{value}",\n'

    def command(self, interpreter: str, path: Path) -> list[str]:
        return [interpreter, str(path)]

    def live(self, path: Path, library: Library) -> Loading:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            (values,) = (
                ast.literal_eval(statement.value)
                for statement in ast.parse(text).body
                if isinstance(statement, ast.Assign)
                and [ast.unparse(name) for name in statement.targets] == ["VARIABLES"]
            )
            return Loading({str(name): str(value) for name, value in values.items()})
        except (SyntaxError, ValueError, AttributeError) as problem:
            raise WorkError(
                f"{path} is not a test that sets variables: {problem}", code="published.invalid"
            ) from None
