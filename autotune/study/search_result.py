"""Results: the answer of a study as one JSON document (docs/explanation/design.md, "Commands").

Its rows are those of comparisons too. :mod:`autotune.study.conclusion` fills a result in. Commands
that only read a stored result import this module, which needs no statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator
from typing_extensions import TypedDict

from autotune.document import Omitted, from_json, to_json
from autotune.errors import WorkError
from autotune.json_types import Ends, LibraryName, Number, Unchecked, ValuesByName
from autotune.measurement.result_checks import Checks
from autotune.notes import Note
from autotune.space import Setting
from autotune.space.setting import SettingValues
from autotune.study.screening_summary import ScreeningSummary
from autotune.study.study_status import Status
from autotune.targets.rows import ExecutableRows, MpiChoiceRow, Origin, ProposedFigure
from autotune.wording import HEADLINES, Metric, ParameterNames, interval, percent, share

NOTHING_LEFT = "the strategy has nothing left to try"
NOTHING_NEW = "the strategy looked for a new setting for long and met none"
BUDGET_SPENT = "the budget is spent, its reserve for the proof kept"
BUDGET_GONE = "the budget is spent"
"""The end of a search in which rejected or long runs used part of that reserve."""
MORE_TRIALS = 10
"""Number of trials that is proposed if only trials are bounded: a continued search proves again."""


class Rejections(TypedDict):
    """A setting with runs that were rejected for foreign load."""

    setting: str
    """Key of the setting."""
    runs: int
    rejected: int


class DecidingStep(TypedDict):
    """What would decide an open question."""

    words: str
    options: dict[str, str]
    """Options of the command, with their new values."""


class GainOnPairs(TypedDict):
    """A gain and the number of pairs that it comes from."""

    gain: Number | None
    ci95: Ends | None
    pairs: int


class DefaultFigures(TypedDict, total=False):
    """The median of the default and the number of its runs; empty before the first run."""

    median_s: Number | None
    n: int


class BestSeen(TypedDict):
    """The best setting seen, significant or not."""

    setting: ValuesByName
    """Values by parameter; {} is the default."""
    median_s: Number
    n: int


class RoundOutcome(TypedDict):
    """One proof of a study."""

    round: int
    alpha: Number
    trials: int
    finalists: int
    outcome: str


class PrunedSetting(TypedDict):
    """Whether each parameter of a setting was seen to matter."""

    state: Literal["slim", "pruned", "not pruned"]
    why: str
    whole: ValuesByName | None
    margin: Number | None
    non_inferior: bool | None
    slower_at_most: Number | None
    blocks: int


class SlowRates(TypedDict):
    """How often launches of a setting and of the default were slow."""

    slow: int
    launches: int
    default_slow: int
    default_launches: int
    verdict: Literal["rarer", "more frequent", "no difference shown"]
    alpha: Number
    rarer_from: Number | None
    more_from: Number | None
    threshold: Number


class LibraryLaunches(TypedDict):
    """An MPI library of a search, and its launches."""

    setting: str | None
    """Value of the parameter mpi; null for the library of the default."""
    name: str
    """Family."""
    version: str
    path: str
    """Directory of the launcher."""
    launcher: str
    """Path of the launcher."""
    launches: int
    """Valid launches under this library, without warm-ups."""
    start_s: Number | None
    """Median of wall time minus the program's own figure, in seconds; null if the program prints
    none."""


class SwitchedLibrary(TypedDict):
    """What the library of the recommended setting needs."""

    before: LibraryLaunches
    """Library of the default."""
    after: LibraryLaunches
    """Library of the recommended setting."""
    variables: dict[str, str]
    """Variables by which the program loads the library; the command line sets them."""
    links: str
    """Folder of autotune's cache that the variables name; empty if they name none."""
    dropped: list[str]
    """Launch options and inherited settings in force under the default's library only."""
    same_family: bool
    timed: Literal["figure", "wall"]
    """Whether the program's own figure was compared, or whole launches."""


class LayoutRow(TypedDict):
    """A layout that was tried, with its fastest setting."""

    ranks: int
    threads: int
    workers: int
    cores: int
    time_s: Number
    core_s: Number
    runs: int
    pareto: bool
    setting: ValuesByName


RejectionList = Annotated[
    list[Rejections],
    Field(description="Settings with runs that were rejected for foreign load."),
]


class RecommendedSetting(TypedDict):
    """The setting to use."""

    setting: ValuesByName
    """Values by parameter; {} is the default."""


def _read_recommendation(value: Any) -> Setting:
    return value if isinstance(value, Setting) else Setting(value["setting"])


def _seconds(value: float) -> float:
    return round(value, 3)


Seconds = Annotated[float, PlainSerializer(_seconds, return_type=float)]
"""Seconds, written to the millisecond."""


@dataclass
class Finalist:
    """One setting of the confirmation with its outcome; gains are fractions."""

    setting: SettingValues
    verdict: str
    gain: Number | None
    gain_ci: Ends
    """The ends of the interval; both None if there is no interval yet."""
    gain_range: Ends | None
    """Range of the pairs, if they are too few for an interval."""
    blocks: int
    words: str


@dataclass
class Result:
    """Everything that the command line prints at the end: the document of a search.

    :mod:`autotune.study.conclusion` fills it in.
    """

    schema_: Annotated[Literal["autotune-result-1"], Field(alias="schema")] = field(
        default="autotune-result-1", kw_only=True
    )
    status: Status
    """The answer; unguarded: measured with --no-guard, so nothing is proven."""
    recommended: Annotated[
        Setting,
        PlainValidator(_read_recommendation),
        PlainSerializer(
            lambda setting: {"setting": setting.to_json()}, return_type=RecommendedSetting
        ),
    ]
    """The setting to use; {} is the default."""
    study: str
    """Study: first digits of its hash."""
    mpi: LibraryName
    """MPI library: family and version."""
    machine: str
    """Fingerprint of the machine."""
    cluster: str
    app: str
    ranks: int
    strategy: str
    seed: int
    guard: bool = True
    """Whether runs were rejected for foreign load."""
    ended_by: str = ""
    """Why the search ended."""
    trials: int = 0
    """Settings tried, without the default."""
    budget_s: Number | None = None
    """Budget in machine seconds; null: no limit."""
    max_runs: int | None = None
    """Largest number of launches; null: no limit."""
    search_runs: int = 0
    """Launches of the search, rejected ones included."""
    confirmation_runs: int = 0
    """Launches of the proof."""
    runs_rejected: int = 0
    """Runs rejected for foreign load."""
    rejections: RejectionList = field(default_factory=list)
    drift_repeats: int = 0
    """Blocks measured twice, because the speed of the machine had changed."""
    metric: Metric = field(default_factory=Metric)
    """What the figures are; the time of a rate is 1/rate, without the prefix of its unit."""
    proposed_metric: ProposedFigure | None = None
    """The figure that the program prints, while the wall time counts; null if none is certain."""
    default: DefaultFigures = field(default_factory=DefaultFigures)
    """The default."""
    best: BestSeen | None = None
    """Best setting seen, also if not proven."""
    gain: Number | None = None
    """Confirmed gain of the recommended setting, T_default / T - 1."""
    gain_ci: Annotated[Ends | None, Field(alias="gain_ci95")] = None
    """Ends of the 95 % interval of the gain."""
    gain_pairs: int = 0
    """Number of pairs after the proof from which `gain` comes; 0: it is the gain of the proof."""
    gain_proof: GainOnPairs | None = None
    """Gain in the proof, which is biased upwards because a proof stops when the gain looks large.
    """
    significant: bool = False
    """Whether the proof showed that the setting is faster."""
    round: int | None = None
    """Round in which the setting was proven."""
    rounds: list[RoundOutcome] = field(default_factory=list)
    """Proofs of this study."""
    pruning: PrunedSetting | None = None
    """Whether each parameter of the setting was seen to matter."""
    next_step: DecidingStep | None = None
    """What would decide an open question; null if nothing is open."""
    slow_launches: SlowRates | None = None
    """Launches that took more than `threshold` times the usual time, with the setting and with the
    default."""
    comparisons: int = 1
    """Number of searches and comparisons of this program against this default in the database; each
    has an error probability of its own."""
    fidelity: ScreeningSummary | None = None
    """What cheap runs cost and saved; null without them."""
    finalists: list[Finalist] = field(default_factory=list)
    """Settings of the proof."""
    checks: Checks = None
    unchecked: Unchecked = field(default_factory=list)
    contradictions: list[Note] = field(default_factory=list)
    """The objections to settings that won their proof."""
    warnings: list[Note] = field(default_factory=list)
    inherited: dict[str, str] = field(default_factory=dict)
    """MPI settings that were in force without being asked for."""
    params_file: str | None = None
    """Parameter file that was written."""
    mpirun: str = ""
    """Line that starts the program with the setting."""
    mpirun_with_file: str = ""
    """The same with the parameter file; empty if there is none."""
    input_folder: Omitted[str] = None
    """Folder with the program's input files for this setting."""
    start_line: Omitted[str] = None
    """Shell line that starts the program in this folder, after its preparation."""
    libraries: list[LibraryLaunches] = field(default_factory=list)
    """MPI libraries of a search under several, that of the default first; empty for one."""
    switch: SwitchedLibrary | None = None
    """What the library of the recommended setting needs; null if it is that of the default."""
    executables: ExecutableRows = field(default_factory=list)
    origin: Origin | None = None
    """Directory, environment and files with which the program ran."""
    wall_s: Seconds = 0.0
    waiting_s: Seconds = 0.0
    """Seconds spent waiting for locks and for a quiet machine."""
    overhead_s: Seconds = 0.0
    """Wall time without launches and waiting."""
    layouts: Omitted[list[LayoutRow]] = None
    """Layouts that were tried (--pareto)."""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this command launches with that MPI library; no part of the stored result."""

    def to_json(self) -> dict[str, Any]:
        """The published form (``autotune-result-1``), in JSON types."""
        return to_json(self)

    @property
    def library_title(self) -> str:
        """The MPI library; of several, that of the default and the others."""
        title = f"{self.mpi['name']} {self.mpi['version']}"
        others = [f"{row['name']} {row['version']}" for row in self.libraries[1:]]
        return title if not others else f"{title} (default) and {', '.join(others)}"

    @property
    def headline(self) -> str:
        """The answer in one sentence, with the gain of a recommendation."""
        if self.status != "recommended":
            return HEADLINES[self.status]
        ends = interval(self.gain_ci)
        return f"A better setting is proven: {percent(self.gain)}{f' ({ends})' if ends else ''}."

    @property
    def names(self) -> ParameterNames:
        """The names of the proof's settings in texts that mention them often."""
        return ParameterNames.of_candidates(
            {f.setting.key: f.setting.to_json() for f in self.finalists}
        )

    def evidence(self) -> list[str]:
        """How reliable the recommendation is, in sentences; empty without a recommendation."""
        if self.status != "recommended":
            return []
        sentences = [_gain_words(self.gain_pairs, self.gain_proof)]
        if len(self.rounds) > 1:
            own = next(row for row in self.rounds if row["round"] == self.round)
            sentences.append(
                f"Proven in round {self.round} of this study, which may spend "
                f"{100 * own['alpha']:.2f} % of the error probability."
            )
        if self.pruning is not None:
            sentences.append(_pruning_words(self.pruning))
        if self.slow_launches is not None:
            sentences.append(f"{slow_words(self.slow_launches)}.")
        if self.comparisons > 1:
            sentences.append(comparisons_words(self.comparisons))
        return sentences

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """Inverse of :meth:`to_json` for a stored result; raises WorkError for a damaged one."""
        try:
            result = from_json(Result, data)
            # A result that can be said in words is complete.
            _ = result.headline, result.evidence()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
            raise damaged_result(problem) from None
        return result


def damaged_result(problem: Exception) -> WorkError:
    """The error for a stored result that cannot be read."""
    return WorkError(
        f"a stored result is damaged ({problem!r:.200}): somebody else wrote to the "
        "results database. Restore a copy from before, or use another database "
        "(--store)",
        code="study.damaged",
    )


def comparisons_words(number: int) -> str:
    """How many searches and comparisons of a program the database has."""
    return (
        f"The database has {number} searches and comparisons of this program against this "
        "default; each has its own error probability."
    )


def _gain_words(pairs: int, proof: GainOnPairs | None) -> str:
    """Where the gain comes from."""
    if not pairs:
        return (
            "The gain is that of the proof, which stops early when the gain looks large: it is "
            "probably smaller. No fresh pairs were measured after it."
        )
    if proof is None or proof["gain"] is None:
        return f"The gain is that of {pairs} pairs measured after the proof."
    ends = f" ({interval(proof['ci95'])})"
    return (
        f"The gain is that of {pairs} pairs measured after the proof. The proof itself, which "
        f"stops early when the gain looks large, showed {percent(proof['gain'])}{ends}."
    )


def _pruning_words(pruning: PrunedSetting) -> str:
    if pruning["state"] == "not pruned":
        some = (
            ""
            if pruning["whole"] is None
            else f" to the end, from {len(pruning['whole'])} parameters on"
        )
        return (
            f"Not pruned{some}: {pruning['why']}; some of the remaining parameters may "
            "have no effect."
        )
    whole = pruning["whole"]
    if whole is None:
        return "Each parameter was shown to have an effect."
    what, margin = f"Pruned from {len(whole)} parameters", share(pruning["margin"] or 0.0)
    if pruning["non_inferior"] is False:
        return f"{what}: more than {margin} slower than the whole setting, but proven by itself."
    if pruning["slower_at_most"] is None:
        return (
            f"{what}; not compared with the whole setting ({pruning['why'] or 'no interval yet'})."
        )
    most = "not slower than the whole setting"
    if pruning["slower_at_most"] > 0:
        most = f"at most {share(pruning['slower_at_most'])} slower than the whole setting"
    where = "within" if pruning["non_inferior"] else "not shown to be within"
    return f"{what}: {most}, {where} the margin of {margin}."


def slow_words(rates: SlowRates) -> str:
    """The rates of slow launches, in a sentence."""
    sentence = (
        f"{rates['slow']} of {rates['launches']} launches took more than "
        f"{rates['threshold']:g} times "
        f"as long as usual, {rates['default_slow']} of {rates['default_launches']} with "
        "the default"
    )
    if rates["verdict"] != "no difference shown":
        return f"{sentence}: {rates['verdict']}"
    ends = []
    if rates["rarer_from"] is not None and rates["default_slow"]:
        ends.append(f"{100 * rates['rarer_from']:.0f} % or less")
    if rates["more_from"] is not None:
        ends.append(f"{100 * rates['more_from']:.0f} % or more")
    if not ends:
        return f"{sentence}: too few launches to show a difference"
    return f"{sentence}: no difference shown (a rate of {' or '.join(ends)} would be one)"
