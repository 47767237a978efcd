"""The evidence of a setting as comment lines of its file, one fact in each."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.space import Setting
from autotune.targets.target import Target

Ends = tuple[float | None, float | None]


def file_evidence(
    setting: Setting, claims: Sequence[str], target: Target | None = None, machine: str = ""
) -> list[str]:
    """The comment lines of a setting's file: the setting, where it was measured, and its claims.

    ``target`` is None if nothing was run; ``machine`` is a fingerprint, empty if not known.
    """
    return [f"autotune: {setting.key}", *_where(target, machine), *claims]


def gain_words(gain: float | None, ends: Ends | None) -> str:
    """``+8.3 % (95 % interval +5.1 to +11.0 %)``, or that there is no gain; from fractions."""
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
