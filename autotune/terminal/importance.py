"""Terminal output of the importance of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.terminal.render import print_line, print_note, print_table
from autotune.wording import count, percent

if TYPE_CHECKING:
    from autotune.anova.importance import ParameterImportance
    from autotune.api.importance import ImportanceAnalysis


SHOWN_PAIRS = 5


def print_importance(importance: ImportanceAnalysis, limit: int) -> None:
    """Print the ``limit`` most important parameters, and strong interactions."""
    response_table, result, evidence = importance.table, importance.result, importance.evidence
    print_line(
        f"{response_table.origin}: {result.rows} rows (setting x cell), "
        f"{count(len(response_table.cells), 'cell')}; the random forest explains "
        f"{max(result.r2, 0):.0%} of the variance of settings that it was not trained "
        "on"
    )
    for note in importance.notes:
        print_note(note)
    # A search does not draw settings at random, so a parameter that was set together with a good
    # one looks good, too.
    is_study = response_table.origin.startswith("study")
    parameters = sorted(result.parameters, key=lambda m: not m.certain and is_study)
    rows = [_row(m, is_study) for m in parameters[:limit]]
    columns = ["parameter", ">shuffled", ">95 %", ">alone", ">Pearson", ">rank"]
    which = "the variance, shown where it is certain" if is_study else "the variance"
    title = f"share of {which} (shuffled: interactions included)"
    print_table(title, columns, rows)
    signs = {"*": "certainly above 0", "!": "needed, as the proof has shown"}
    legend = [f"{s} {w}" for s, w in signs.items() if any(row[0].endswith(s) for row in rows)]
    print_line("; ".join(legend) or "no parameter has a certain effect: there are too few runs")
    if evidence.proven:
        print_line(f"proven: {percent(evidence.gain)} with {', '.join(evidence.proven)}")
    if evidence.taken_out:
        words = "taken out of the proven setting, which is no slower without"
        print_line(f"{words}: {', '.join(evidence.taken_out)}")
    if importance.unused:
        names = ", ".join(importance.unused)
        print_line(f"left out, because the program does not use them: {names}")
    sure = {m.name for m in result.parameters if m.certain or not is_study}
    strong = [p for p in result.pairs if p.share >= 0.01 and {p.first, p.second} <= sure]
    strong = strong[:SHOWN_PAIRS]
    if strong:
        rows = [
            [f"{p.first} x {p.second}", f"{p.share:.1%}", f"{p.lo:.1%} .. {p.hi:.1%}"]
            for p in strong
        ]
        print_table(
            "interactions (beyond the effects of each alone)", ["pair", ">share", ">95 %"], rows
        )


def _row(m: ParameterImportance, is_study: bool) -> list[str]:
    """A row; of a study, where a search chose the settings, no share that may be chance."""
    return [
        m.name + ("!" if m.proven else "*" if m.certain else ""),
        f"{max(m.shuffled, 0):.1%}" if m.shuffled_lo > 0 or not is_study else "-",
        f"{m.shuffled_lo:.1%} .. {m.shuffled_hi:.1%}",
        f"{m.alone:.1%}" if m.certain or not is_study else "-",
        "-" if m.pearson is None else f"{m.pearson:+.2f}",
        "-" if m.spearman is None else f"{m.spearman:+.2f}",
    ]
