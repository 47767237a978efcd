"""The probe: a real launch that loads a file, with values read back and canaries that must fail."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.config.cluster import Cluster
from autotune.config.launcher import options_for
from autotune.publish.content import Content
from autotune.publish.formats.base import Canary, Format, Loading, rule_variables, variables
from autotune.publish.formats.scripts import Script
from autotune.publish.tune_file import NotObeyed
from autotune.targets.launch_options import MAPPING, with_placement, without_parameters
from autotune.wording import count
from runner.files.scratch import Scratch
from runner.launch import Runner
from runner.machine import describe_machine
from runner.mpi.base import PYTHON_LIBRARY
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.probe.command import small_program
from runner.types import LIBRARY, LaunchSpec, ReadBack, RunRecord

TIMEOUT_S = 60.0
DEAD = ("failed", "launch_error", "no_mpi")
Names = set[tuple[str, str]]
FullText = Callable[[Content], str]
"""The whole text of the file with the given content."""


class Prober:
    """Starts a small MPI program with one library.  Use it as a context manager.

    Nothing is timed, so runs are not rejected for foreign load.
    """

    def __init__(self, library: Library, cluster: Cluster) -> None:
        self.library = library
        self.cluster = cluster
        self.runner = Runner(adapter(library), guard=False, cpus=cluster.cpu_set)
        # There are two ranks on each of two nodes.  With one rank on a node, no message goes
        # through the memory of the node, and parameters about it are not in force.
        self._fewest = 2 * min(cluster.nodes, 2)
        self._places = Scratch("publish")

    def __enter__(self) -> Prober:
        self.runner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.runner.__exit__(*error)
        self._places.close()

    def place(self) -> Path:
        """A new private directory."""
        return Path(tempfile.mkdtemp(dir=self._places.path))

    def stage(self, fmt: Format, text: str) -> Loading:
        """Write a private copy of ``text``.  A cluster-wide file is loaded without the caller's own
        files, which would have precedence."""
        loading = fmt.stage(text, self.place(), self.library)
        if fmt.cluster_wide:
            return Loading({"HOME": str(self.place())} | dict(loading.env), loading.options)
        return loading

    def prove(self, fmt: Format, content: Content, full_text: FullText) -> str:
        """Stage the file and test that it is obeyed; returns a sentence about what was seen.

        First come the canaries: each must stop a launch that runs with the real file.  Raises
        NotObeyed with the values that had no effect.
        """
        canaries = fmt.canaries(content, self.library)
        canary_runs = [(canary, self._canary(fmt, canary, full_text)) for canary in canaries]
        loading = self.stage(fmt, full_text(content))
        biggest = max(canaries, key=lambda c: c.ranks, default=Canary(content, frozenset()))
        record = self.run(loading, content, fmt, biggest.operation, biggest.ranks, biggest.options)
        observed_names: Names = self._read_back(record, fmt, content)
        for canary, other in canary_runs:
            if other.state in DEAD or (not canary.dies and _bound_otherwise(record, other)):
                observed_names |= canary.names
        self._check_variables(fmt, loading, content)
        observed_names |= self._values_in_force(fmt, loading, content)
        if missing := content.names - observed_names:
            raise NotObeyed(_unseen(fmt, missing, canary_runs), code="publish.not_obeyed")
        canary_words = "; canaries acted" if canaries else ""
        return f"{count(len(content.names), 'value')} seen in force in a private copy{canary_words}"

    def try_sample(self, fmt: Format) -> str:
        """Test with a sample of a format that a launch obeys its files; returns what was seen.

        Raises WorkError (NotObeyed for most reasons) if none was obeyed.
        """
        content = fmt.sample(self.library)
        if not content.names:
            raise NotObeyed(
                f"{fmt.name}: there is no sample for {self.library.family}, so nothing was seen "
                "(Format.sample)",
                code="publish.not_obeyed",
            )
        return self.prove(
            fmt, content, lambda shown: fmt.prologue + fmt.render(shown, self.library)
        )

    def check(self, fmt: Format, content: Content, loading: Loading) -> None:
        """Test that a file in place is obeyed; raises NotObeyed."""
        ranks = 3 if content.rules else 0
        self._read_back(self.run(loading, content, fmt, "allreduce", ranks), fmt, content)
        self._check_variables(fmt, loading, content)
        self._values_in_force(fmt, loading, content)

    def run(
        self,
        loading: Loading,
        content: Content,
        fmt: Format,
        operation: str,
        ranks: int,
        options: tuple[str, ...] = (),
    ) -> RunRecord:
        """Launch the probe program, with ``options``, once with the file."""
        expected_params = expected_values(fmt, content, self.library)
        has_placement = bool(content.groups.get("placement"))
        cores = self.cluster.cores or self.cluster.cores_per_node or describe_machine().cores
        # Rules are for numbers of ranks.
        ranks = ranks if content.rules else max(ranks, self._fewest)
        # A mapping on the command line would have precedence over the one to be tested.
        ranks = min(ranks, cores) if has_placement else ranks
        # The cluster's options would have precedence over what is tested, too.
        words = without_parameters(self.cluster.options(self.library), set(expected_params))
        if has_placement:
            tables = options_for(self.library.launcher, self.library)
            words, _ = with_placement(words, dict.fromkeys(MAPPING, ""), tables)
        spec = LaunchSpec(
            program=tuple(small_program(self.library, operation, options)),
            ranks=ranks,
            env=_own_library(self.library) | dict(loading.env),
            expected=expected_params,
            expected_variables=dict(content.groups.get("env", {})),
            launch_options=(*words, *loading.options),
            oversubscribe=ranks > cores and not has_placement,
            timeout_s=TIMEOUT_S,
        )
        return self.runner.run(spec)

    def _canary(self, fmt: Format, canary: Canary, full_text: FullText) -> RunRecord:
        loading = self.stage(fmt, full_text(canary.content))
        # Read-back does not matter here, because the launch must fail before it.
        readable_part = Content(canary.content.only("placement").groups, canary.content.rules)
        return self.run(loading, readable_part, fmt, canary.operation, canary.ranks, canary.options)

    def _read_back(self, record: RunRecord, fmt: Format, content: Content) -> Names:
        wrong = [
            f"{name} = {r.requested} became {r.effective or r.state}"
            + (f" (from {r.source})" if r.source else "")
            for name, r in record.read_back.items()
            if r.state not in ("in force", "not observable") and not _has_value(r)
        ]
        if wrong:
            raise NotObeyed(
                f"{fmt.name}: the file is not obeyed: {'; '.join(wrong)}", code="publish.not_obeyed"
            )
        if record.state != "ok":
            raise NotObeyed(
                f"{fmt.name}: a launch with the file does not run: {record.state}: {record.reason}",
                code="publish.not_obeyed",
            )
        observed_names = {
            n for n, r in record.read_back.items() if r.state == "in force" or _has_value(r)
        }
        rule_values = rule_variables(content, self.library)
        return {
            (group, name)
            for group, values in content.groups.items()
            for name in values
            if group in ("mca", "env") and name in observed_names
        } | {
            ("rules", collective)
            for collective, (name, _) in rule_values.items()
            if name in observed_names
        }

    def _check_variables(self, fmt: Format, loading: Loading, content: Content) -> None:
        """Raise NotObeyed if a script sets other variables than it should."""
        if not isinstance(fmt, Script):
            return
        settings = variables(content, self.library)
        wrong = [n for n, v in settings.items() if loading.env.get(n) != v]
        if wrong:
            raise NotObeyed(
                f"{fmt.name}: the file does not set {', '.join(sorted(wrong))}",
                code="publish.not_obeyed",
            )
        extra = set(loading.env) - set(settings)
        if extra:
            raise NotObeyed(
                f"{fmt.name}: the file also sets {', '.join(sorted(extra))}",
                code="publish.not_obeyed",
            )

    def _values_in_force(self, fmt: Format, loading: Loading, content: Content) -> Names:
        """Numbers that a command of the library (MPICH's ``mpivars``) shows in force.  A choice
        (shown as its number) and text are left to the canaries.  Raises NotObeyed for a name that
        the library does not have."""
        parameters = content.groups.get(LIBRARY, {})
        if not parameters:
            return set()
        values = adapter(self.library).values_in_force({**os.environ, **loading.env})
        if unknown := sorted(set(parameters) - set(values)) if values else []:
            raise NotObeyed(
                f"{fmt.name}: {self.library.family} {self.library.version} has no variable "
                f"{', '.join(unknown)}",
                code="parameter.unknown",
            )
        return {(LIBRARY, name) for name, value in parameters.items() if values.get(name) == value}


def _has_value(back: ReadBack) -> bool:
    """Whether the library has the value, although its component is not used in the probe."""
    return back.state == "inactive" and back.effective is not None


def _bound_otherwise(record: RunRecord, other: RunRecord) -> bool:
    has_bindings = bool(record.bindings and other.bindings)
    return has_bindings and record.bindings != other.bindings


def _unseen(fmt: Format, missing: Names, canary_runs: Sequence[tuple[Canary, RunRecord]]) -> str:
    names = ", ".join(sorted(name for _, name in missing))
    ran = [record for canary, record in canary_runs if canary.names & missing]
    if not ran:
        return f"{fmt.name}: no observable value shows whether {names} took effect"
    return (
        f"{fmt.name}: the file is not obeyed: other values in place of {names} should "
        f"have stopped or changed the launch, but it ended with {ran[-1].state}, ranks "
        f"bound to {' | '.join(ran[-1].bindings) or 'nothing that was seen'}"
    )


def expected_values(fmt: Format, content: Content, library: Library) -> dict[str, str]:
    """Library parameters that a launch with the file must read back."""
    return fmt.expected_parameters(content, library) if adapter(library).reads_back else {}


def _own_library(library: Library) -> dict[str, str]:
    """Variables with which mpi4py loads the launcher's library instead of this Python's."""
    others = {name: value for name, value in os.environ.items() if name != PYTHON_LIBRARY}
    return adapter(library).python_variables(others)
