"""The features of one program and their file ``app_features.json``."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import files
from runner.files import atomic_file
from runner.files.json_text import parse_json
from runner.trace.checks import RETRY_HINT, EntryChecks, FeaturesError
from runner.trace.partners import Partners, partners_from_json
from runner.trace.profile import Profile, profile_from_json
from runner.trace.schema import FEATURE_NAMES, SCHEMA, SPECS
from runner.trace.steps import Steps, steps_from_json

_SLACK = 1e-9
_LARGEST_MIB = 4


@dataclass(frozen=True)
class Features:
    """The features from one traced run.

    ``values`` holds every name of FEATURE_NAMES, finite and not negative. ``method`` is ``pmpi``
    (the profiling library) or ``mpi4py`` (the substitute without a compiler). ``machine`` holds
    ``fingerprint``, ``cpu_model`` and ``hostname`` as texts. ``app``, ``input`` and ``cluster`` are
    None if unknown. ``wall_s`` is the longest time of a rank from Init to Finalize, in seconds.
    ``figure_s``: the seconds that a search compares, the program's own figure or the launch's time.
    ``profile``, ``figure_s``, ``partners`` and ``steps`` are None if not recorded; ``partners``
    also if there are too many, ``steps`` also if there are none.
    """

    values: dict[str, float]
    argv: tuple[str, ...]
    cwd: str
    ranks: int
    nodes: int
    cores: int
    mpi_name: str
    mpi_version: str
    machine: dict[str, str]
    wall_s: float
    method: str = "pmpi"
    app: str | None = None
    input: str | None = None
    cluster: str | None = None
    profile: Profile | None = None
    figure_s: float | None = None
    partners: Partners | None = None
    steps: Steps | None = None

    def vector(self, names: Iterable[str] = FEATURE_NAMES) -> list[float]:
        """The values in the order of ``names``; raises KeyError for an unknown name."""
        return [self.values[name] for name in names]

    def save(self, path: Path | str) -> None:
        """Write the file completely or not at all; raises FeaturesError if that fails."""
        place = Path(path)
        try:
            text = json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"
            with atomic_file(place) as file:
                file.write(text.encode())
        except OSError as problem:
            raise FeaturesError(
                f"cannot write {place}: {problem.strerror}", code="file.unwritable"
            ) from None

    def portable(self) -> Features:
        """The features without paths of this machine, for use on others."""
        words = tuple(Path(w).name if Path(w).is_absolute() else w for w in self.argv)
        return dataclasses.replace(self, argv=words, cwd=".")

    def to_json(self) -> dict[str, Any]:
        """The content of the file as JSON types."""
        content = {
            "schema": SCHEMA,
            "method": self.method,
            "app": self.app,
            "input": self.input,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "cluster": self.cluster,
            "ranks": self.ranks,
            "nodes": self.nodes,
            "cores": self.cores,
            "mpi": {"name": self.mpi_name, "version": self.mpi_version},
            "machine": dict(self.machine),
            "wall_s": self.wall_s,
            "features": {name: self.values[name] for name in FEATURE_NAMES},
            "figure_s": self.figure_s,
            "profile": None if self.profile is None else self.profile.to_json(),
            "partners": None if self.partners is None else self.partners.to_json(),
        }
        # Files from before steps were counted have no such key.
        return content if self.steps is None else content | {"steps": self.steps.to_json()}


def load_features(path: Path | str) -> Features:
    """Read and check a features file.

    Raises FeaturesError with file and key if the file is unreadable or truncated, or has NaN,
    missing or unknown keys, another schema version, or values out of range.
    """
    place = str(path)
    try:
        text = files.read_user_file(path, _LARGEST_MIB << 20)
    except (OSError, UnicodeDecodeError) as problem:
        if getattr(problem, "errno", None) == errno.EFBIG:
            raise FeaturesError(
                f"{place} is too large to be a features file (limit: {_LARGEST_MIB} MiB)",
                code="features.too_large",
            ) from None
        reason = getattr(problem, "strerror", None) or problem
        raise FeaturesError(
            f"cannot read {place}: {reason}; expected a features file", code="features.unreadable"
        ) from None
    try:
        data = parse_json(text)
    except ValueError as problem:
        raise FeaturesError(
            f"{place} is not a complete JSON file ({problem}): cut off or damaged.\n{RETRY_HINT}",
            code="features.damaged",
        ) from None
    return features_from_json(data, place)


def features_from_json(data: Any, place: str = "features") -> Features:
    """Features from a file's content; errors (FeaturesError) name ``place``."""
    if not isinstance(data, dict):
        raise FeaturesError(
            f"{place}: expected a JSON object with a features schema.\n{RETRY_HINT}",
            code="features.damaged",
        )
    schema = data.get("schema")
    if schema != SCHEMA:
        raise FeaturesError(
            f"{place}: schema is {schema!r}, expected {SCHEMA!r}: written by another version, or "
            f"not a features file.\n{RETRY_HINT}",
            code="features.version",
        )
    check = EntryChecks(place)
    # The output of a command has the content of the file, and says why the library was taken.
    data = {name: value for name, value in data.items() if name != "mpi_choice"}
    steps = data.pop("steps", None)
    check.keys("", data, _KEYS)
    mpi = check.mapping("mpi", data["mpi"])
    check.keys("mpi", mpi, ("name", "version"))
    machine = check.mapping("machine", data["machine"])
    check.keys("machine", machine, MACHINE_KEYS)
    ranks, nodes = check.natural("ranks", data["ranks"]), check.natural("nodes", data["nodes"])
    figure_s, profile, partners = data["figure_s"], data["profile"], data["partners"]
    return Features(
        values=_values(check, data["features"], ranks),
        argv=tuple(check.texts("argv", data["argv"])),
        cwd=check.text("cwd", data["cwd"]),
        ranks=ranks,
        nodes=nodes,
        cores=check.natural("cores", data["cores"]),
        mpi_name=check.text("mpi.name", mpi["name"]),
        mpi_version=check.text("mpi.version", mpi["version"]),
        machine={key: check.text(f"machine.{key}", machine[key]) for key in MACHINE_KEYS},
        wall_s=check.number("wall_s", data["wall_s"]),
        method=check.one_of("method", data["method"], ("pmpi", "mpi4py")),
        app=check.optional("app", data["app"]),
        input=check.optional("input", data["input"]),
        cluster=check.optional("cluster", data["cluster"]),
        profile=None if profile is None else profile_from_json(profile, check),
        figure_s=None if figure_s is None else check.number("figure_s", figure_s),
        partners=None if partners is None else partners_from_json(partners, ranks, nodes, check),
        steps=None if steps is None else steps_from_json(steps, ranks, check),
    )


MACHINE_KEYS = ("fingerprint", "cpu_model", "hostname")
_KEYS = (
    *("schema", "method", "app", "input", "argv", "cwd", "cluster", "ranks", "nodes", "cores"),
    *("mpi", "machine", "wall_s", "features", "figure_s", "profile", "partners"),
)


def _values(check: EntryChecks, raw: Any, ranks: Any) -> dict[str, float]:
    data = check.mapping("features", raw)
    check.keys("features", data, FEATURE_NAMES)
    values = {}
    for name in FEATURE_NAMES:
        value = check.number(f"features.{name}", data[name])
        largest = SPECS[name].largest
        if largest is not None and value > largest + _SLACK:
            check.fail(f"features.{name}", value, f"a number from 0 to {largest:g}")
        values[name] = value
    if values["ranks"] != ranks:
        check.fail("features.ranks", values["ranks"], f"the same as ranks, {ranks}")
    return values
