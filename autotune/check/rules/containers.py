"""Containers that are started for each rank: what the launcher gives a rank, and what ranks share.

The options are read from the words of the line.  Words behind the image are the program's, so an
option that may be one of them is taken as given: a false alarm is worse than a missed fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule

_CLOSED = ("podman", "docker", "nerdctl")
"""Commands whose containers inherit neither variables nor name spaces."""
_OPEN = ("apptainer", "singularity")
"""Commands whose containers inherit both, unless an option says otherwise."""
_HIDING = ("--cleanenv", "--containall")
_IMAGES = (".sif", ".simg", ".img")


@dataclass(frozen=True)
class _RankContainer:
    """The command ``name`` that starts a container for each rank; ``at`` is the place of its
    sub-command (``run``, ``exec``) among the words of the program."""

    name: str
    words: tuple[str, ...]
    at: int

    @property
    def options(self) -> tuple[str, ...]:
        """The words behind the sub-command, up to the image if it is known by its name."""
        behind = self.words[self.at + 1 :]
        images = (n for n, w in enumerate(behind) if w.endswith(_IMAGES) or "://" in w)
        return behind[: next(images, len(behind))]

    def has(self, *names: str) -> bool:
        """Whether one of the options is given, with its value or without."""
        return any(w == n or w.startswith(f"{n}=") for w in self.options for n in names)

    def with_options(self, *options: str) -> tuple[str, ...]:
        """The words of the program with these options behind the sub-command."""
        return (*self.words[: self.at + 1], *options, *self.words[self.at + 1 :])

    def without(self, *options: str) -> tuple[str, ...]:
        end = self.at + 1 + len(self.options)
        kept = [w for w in self.words[self.at : end] if w not in options]
        return (*self.words[: self.at], *kept, *self.words[end:])


def _rank_container(facts: LaunchFacts) -> _RankContainer | None:
    words = facts.line.program
    for start, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in (*_CLOSED, *_OPEN):
            places = (n for n in range(start + 1, len(words)) if words[n] in ("run", "exec"))
            at = next(places, None)
            return None if at is None else _RankContainer(name, words, at)
    return None


class HiddenVariables(LaunchRule):
    """The variables of the launcher do not reach the ranks in their containers."""

    code = "container.variables"
    weight = Weight.WRONG
    summary = "the container of each rank does not get the launcher's variables"
    explanation = (
        "The launcher tells each rank by variables (PMIX_..., PMI_..., OMPI_...) who it is. Podman "
        "and Docker hand none of them into a container, and Apptainer with --cleanenv only those "
        "that begin with APPTAINERENV_. Each rank is then alone in an MPI_COMM_WORLD of size 1. "
        "The cure is podman run --env-host, or Apptainer without --cleanenv; Docker has no such "
        "option (one container for all ranks works: docker run IMAGE mpirun ...)."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if no option hands variables in, and the line has more than one rank."""
        container = _rank_container(facts)
        if container is None or facts.rank_count == 1:
            return
        line = facts.line
        if container.name in _OPEN:
            if not container.has(*_HIDING):
                return
            right = line.with_program(*container.without(*_HIDING)).words
            why = "hides"
        else:
            given = [w for w in container.options if w.startswith(("-e", "--env"))]
            if given:
                return
            is_podman = container.name == "podman"
            right = line.with_program(*container.with_options("--env-host")).words
            right = right if is_podman else ()
            why = "does not hand in"
        yield self.finding(
            f"{container.name} {why} the variables by which the launcher tells a rank its number",
            "each rank is alone in a world of size 1, and does the whole work",
            Certainty.LIKELY,
            corrected_line=right or None,
            advice="" if right else "start one container with mpirun in it",
        )


class SeparateProcesses(LaunchRule):
    """Ranks in containers of their own do not see each other's processes or shared memory."""

    code = "container.namespaces"
    weight = Weight.WRONG
    summary = "the container of each rank has processes and shared memory of its own"
    explanation = (
        "Podman and Docker give each container its own process numbers and its own /dev/shm. Ranks "
        "of one node then cannot use shared memory with each other: Open MPI 4.1.4 ends with a "
        "segmentation fault where the process numbers differ. The cure is --pid=host --ipc=host."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if one of the two options is missing, and the line has more than one rank."""
        container = _rank_container(facts)
        if container is None or container.name not in _CLOSED or facts.rank_count == 1:
            return
        missing = [f"{name}=host" for name in ("--pid", "--ipc") if not container.has(name)]
        if not missing or container.words[container.at] != "run":
            return
        yield self.finding(
            f"{container.name} gives each rank a container without {' and '.join(missing)}",
            "shared memory between the ranks fails, or they talk over the network",
            Certainty.LIKELY,
            corrected_line=facts.line.with_program(*container.with_options(*missing)).words,
        )
