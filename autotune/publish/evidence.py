"""What a parameter file says of where its values come from: comment lines, one fact each."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.space import Setting
from autotune.study.target import Target

Ends = tuple[float | None, float | None]


def file_evidence(
    setting: Setting, claims: Sequence[str], target: Target | None = None, machine: str = ""
) -> list[str]:
    """The lines of one setting's file: the setting, where it was measured, what is claimed of it.

    ``target`` is None where nothing was run, ``machine`` a fingerprint, empty where not told.
    """
    return [f"autotune: {setting.key}", *_where(target, machine), *claims]


def gain_words(gain: float | None, ends: Ends | None) -> str:
    """``+8.3 % (95 % interval +5.1 to +11.0 %)``, or that there is none; shares (0.083: 8.3 %)."""
    if gain is None:
        return "none proven"
    words = f"{gain * 100:+.1f} %"
    if ends is None or ends == (None, None):
        return words
    low, high = ("open" if end is None else f"{end * 100:+.1f} %" for end in ends)
    return f"{words} (95 % interval {low.removesuffix(' %') if high != 'open' else low} to {high})"


def _where(target: Target | None, machine: str) -> list[str]:
    if target is None:
        return []
    words = f"for {target.app.name} on {target.ranks} ranks, {target.library.family} "
    words += f"{target.library.version}, "
    words += f"machine {machine}, " if machine else ""
    return [f"{words}cluster {target.cluster.name}"]
