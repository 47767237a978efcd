"""Terminal output of ``autotune classwide``."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.anova.class_proof import ClasswideProof
from autotune.anova.classwide import Choice
from autotune.anova.classwide_result import ClasswideResult, ProgramEvidence, evidence_checks
from autotune.space import Setting, Value
from autotune.terminal.render import print_line, print_note, print_table
from autotune.wording import FEW, percent

HEADLINES = {
    "recommended": "A better setting for the class is proven.",
    "keep_default": "Keep the default: nothing better is proven for the class.",
    "unproven": "Chosen from recorded runs only: not proven, so it cannot be published.",
    "unguarded": "Measured without the guard: nothing is proven.",
}

HELD_OUT = {
    "gain": "a gain is shown",
    "no loss": "no gain is shown, and no loss beyond the margin",
    "loss": "a loss is shown",
    "open": "neither a gain nor the absence of a loss is shown",
}


def print_classwide(result: ClasswideResult, choice: Choice, proof: ClasswideProof | None) -> None:
    """Print how the setting was chosen, its proof if there is one, and the result."""
    rows = [
        [
            row.name,
            f"{row.share:.0%}",
            _count(row.slower),
            "-" if row.held_out is None else f"{row.held_out:.0%}",
            "-" if row.held_out_slower is None else _count(row.held_out_slower),
        ]
        for row in choice.rows
    ]
    title = "share of the best known gain, and cells slower than the default, on recorded runs"
    columns = ["chosen by", ">share", ">cells slower", ">left out: share", ">cells slower"]
    print_table(title, columns, rows)
    if any(row.held_out is not None for row in choice.rows):
        print_line("left out: each program in turn, judged with the setting chosen without it")
    print_line(f"chosen: {choice.method} ({choice.why})")
    if choice.setting != result.setting:  # If the two are equal, the setting is printed at the end.
        print_line(f"  {choice.setting.key.replace(',', ' ')}")
    if proof is not None:
        print_proof(proof, result.status != "unguarded")
    print_line()
    print_line(HEADLINES[result.status], bold=True)
    print_line(f"{result.why}")
    if result.next_step:
        print_line(f"to decide it: {result.next_step}")
    if result.gain is not None:
        ends = f"{percent(result.lo)} .. {percent(result.hi)}"
        print_line(f"mean gain {percent(result.gain)} ({ends})")
    if result.held_out_shows is not None:
        ends = f"{percent(result.held_out_lo)} .. {percent(result.held_out_hi)}"
        gain = f"{percent(result.held_out_gain)} ({ends})"
        verdict = HELD_OUT[result.held_out_shows]
        print_line(f"held-out programs {gain}: {verdict}")
    for name, value in result.setting.items():
        print_line(f"  {name} = {value}")
    if result.programs and result.setting:
        rows = [
            [f"{own.app} {own.input or ''}".strip(), str(own.ranks), _own_words(own.setting)]
            for own in result.programs
        ]
        print_table("in each program's own parameters", ["program", ">ranks", "setting"], rows)
    for note in result.warnings:
        print_note(note)


def _own_words(setting: Mapping[str, Value]) -> str:
    return Setting(setting).key.replace(",", " ")


def _count(number: float) -> str:
    """A number of cells, with one decimal if it is a mean."""
    return f"{number:.1f}".removesuffix(".0")


def _interval(row: ProgramEvidence) -> str:
    """Both ends of the interval, or the one that exists; "none (see below)" if there is none."""
    if row.lo is None and row.hi is None:
        return "none (see below)"
    if row.hi is None:
        return f"{percent(row.lo)} or more"
    return (
        f"{percent(row.hi)} or less"
        if row.lo is None
        else f"{percent(row.lo)} .. {percent(row.hi)}"
    )


def print_proof(proof: ClasswideProof, has_guard: bool) -> None:
    """Print what was removed from the setting, and the pairs of every program."""
    margin = f"{100 * proof.margin:g} %"
    pruning = proof.pruned
    sure = [name for name in pruning.without if name not in pruning.unclear]
    if sure:
        costs = f"costs less than {margin}" if has_guard else "looks as if it has no effect"
        print_line(f"taken out, {costs}: {', '.join(sure)}")
    if pruning.unclear:
        print_line(f"taken out, no effect shown: {', '.join(pruning.unclear)}")
    if pruning.unproven:
        every = FEW < len(pruning.unproven) == len(pruning.setting)
        names = f"all {len(pruning.unproven)}" if every else ", ".join(pruning.unproven)
        words = f"not pruned: {names} stayed in although no effect is proven"
        print_line(words)
    rows = [
        [
            f"{row.app} {row.input or ''}".strip() + (" (held out)" if row.held_out else ""),
            str(row.ranks),
            percent(row.gain),
            _interval(row),
            str(row.pairs),
            row.verdict,
        ]
        for row in proof.evidence
    ]
    columns = ["program", ">ranks", ">gain", ">95 % interval", ">pairs", "verdict"]
    if rows:
        print_table("measured on this machine, against the default", columns, rows)
        for row in proof.evidence:
            if row.verdict != "failed" and row.lo is None and row.hi is None:
                name = f"{row.app} {row.input or ''}".strip()
                print_line(f"{name}: no interval: {row.words}")
        if has_guard:
            print_line(f"passed: shown to be at most {margin} slower (--margin)")
    if checks_text := evidence_checks(proof.evidence):
        print_line(checks_text)
    for row in proof.evidence:
        if row.verdict == "failed":
            words = f"failed on {row.app} {row.input or ''}".strip()
            print_line(f"{words}: {row.words} (autotune show {row.study})")
    if proof.cut_short:
        print_line("the budget was spent first; the same command with a larger --budget continues")
