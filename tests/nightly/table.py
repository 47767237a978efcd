"""The table of a nightly run: for a terminal of 80 columns, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from tests.nightly.result import Result

COUNTS = ("tests", "passed", "failed", "skipped")
WIDTH = 38


def rows(results: Iterable[Result]) -> list[tuple[str, int, int, int, int, float]]:
    """One row for each test file, benchmark and kind of fuzzing; the sum comes last."""
    found: dict[str, list[float]] = {}
    total = [0.0] * 5
    for result in results:
        sums = found.setdefault(result.row, [0.0] * 5)
        given = (*(getattr(result, name) for name in COUNTS), result.seconds)
        for place, value in enumerate(given):
            sums[place] += value
            total[place] += value
    found["all"] = total
    return [(n, int(s[0]), int(s[1]), int(s[2]), int(s[3]), s[4]) for n, s in found.items()]


def plain(head: str, results: list[Result]) -> str:
    """Lines of at most 80 columns."""
    form = f"{{:<{WIDTH}.{WIDTH}}}" + "{:>10}{:>10}{:>7}{:>8}{:>7}"
    lines = [*_folded(head), "", form.format("part", *COUNTS, "s")]
    for name, *counts, seconds in rows(results):
        short = name if len(name) <= WIDTH else f"...{name[3 - WIDTH :]}"
        lines.append(form.format(short, *counts, round(seconds)))
    lines += [f"failed: {r.name}\n  {r.log}" for r in results if r.failed]
    return "\n".join(lines)


def markdown(head: str, results: list[Result]) -> str:
    """The same for the documentation."""
    lines = [*_folded(head), "", "| part | " + " | ".join(COUNTS) + " | seconds |"]
    lines.append("|---" + "|---:" * 5 + "|")
    for name, *counts, seconds in rows(results):
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {seconds:.0f} |")
    lines += ["", *(f"Failed: `{r.name}`" for r in results if r.failed)]
    return "\n".join(lines).rstrip() + "\n"


def _folded(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 80)
