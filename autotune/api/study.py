"""A study of the results database, for Python programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autotune.api.convergence import convergence_frame
from autotune.api.options import StoreLike, read
from autotune.errors import WorkError
from autotune.measurement.run_history import history_of
from autotune.space import DEFAULT, Setting
from autotune.store.export import runs_frame
from autotune.study.convergence import best_so_far
from autotune.study.search_result import Result
from autotune.wording import HEADLINES, percent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Best:
    """The best setting of a study.

    ``proven``: it is the recommended setting; otherwise it only looked best.  ``median_s`` is the
    median of its ``runs`` figures, in seconds.
    """

    setting: Setting
    median_s: float
    runs: int
    proven: bool


class Study:
    """A study by its id; its properties are read from the results database on each access.

    ``id`` is the beginning of the study's hash, as the command line prints it.  ``store`` is an
    open database, its path or its URL.  Raises UsageError for an unknown study.
    """

    def __init__(self, id: str, store: StoreLike = None) -> None:
        self._store = store
        with read(store) as database:
            record = database.follow_moved(database.find_study(id))
        self.hash = record.hash
        self._number = record.id

    @property
    def id(self) -> str:
        """Twelve digits that name the study on the command line."""
        return self.hash[:12]

    @property
    def status(self) -> str:
        """``new``, the status of the result, or how the last session ended."""
        with read(self._store) as database:
            return database.get_study(self._number).status

    @property
    def result(self) -> Result:
        """The result.  Raises WorkError if there is none yet."""
        with read(self._store) as database:
            record = database.get_study(self._number)
        if record.result is None:
            raise WorkError(
                f"study {self.id} has no result yet (status {record.status}); the same call of "
                "autotune.tune continues it",
                code="study.no_result",
            )
        return Result.from_json(record.result)

    @property
    def best(self) -> Best:
        """The recommended setting, else the one that looked best (the default if none did)."""
        result = self.result
        if result.best is None:
            level = result.default
            return Best(DEFAULT, float(level["median_s"] or 0), int(level["n"] or 0), False)
        setting = Setting(result.best["setting"])
        is_proven = result.status == "recommended" and setting == result.recommended
        return Best(setting, float(result.best["median_s"]), int(result.best["n"]), is_proven)

    def runs(self, output: bool = False) -> pd.DataFrame:
        """One row for each run, in order; times in seconds, parameters in columns ``param.NAME``.

        ``output``: with the output of the programs.  Raises UsageError for a study without runs.
        """
        with read(self._store) as database:
            return runs_frame(database, self._number, output)

    def trials(self) -> pd.DataFrame:
        """One row for each trial: ``state``, ``estimate`` (T / T_default), the setting's key."""
        import pandas as pd

        with read(self._store) as database:
            records = database.trials(self._number)
        rows: list[dict[str, Any]] = [
            {"trial": t.number, "setting": t.key, "state": t.state, "estimate": t.estimate}
            for t in records
        ]
        return pd.DataFrame(rows, columns=["trial", "setting", "state", "estimate"])

    def convergence(self) -> pd.DataFrame:
        """The best setting so far against runs and machine seconds, one row wherever it changes.

        Columns: ``runs``, ``machine_s`` (both of the search, without the confirmation), ``ratio``
        (T / T_default as measured, before any proof) and ``setting``. It begins with the default
        and ends with the search; without a tried setting it is empty.
        """
        with read(self._store) as database:
            entries = history_of(database, self._number).entries
            return convergence_frame(best_so_far(entries, database.trials(self._number)))

    def __repr__(self) -> str:
        with read(self._store) as database:
            record = database.get_study(self._number)
        if record.result is None or "finalists" not in record.result:
            return f"<Study {self.id}: {record.status}>"
        result = Result.from_json(record.result)
        default = result.default.get("median_s")
        words = f"{HEADLINES[result.status]}; {result.app} on {result.ranks} ranks"
        if default is not None:
            words += f", default {result.metric.words(float(default))}"
        if result.gain is not None:
            words += f"; {result.recommended.key}: {percent(result.gain)}"
        return f"<Study {self.id}: {words}>"
