"""What an MPI library is and what parameters it has: the description that discovery fills in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ParamInfo:
    """One run-time parameter as the running library describes it.

    ``default`` is the value the library starts with, as text.  ``enum`` maps numbers to names where
    the library enumerates the values.  ``synonym_of`` is the current name of a deprecated one.
    """

    name: str
    type: str
    default: str
    framework: str = ""
    component: str = ""
    level: int = 9
    help: str = ""
    enum: dict[int, str] = field(default_factory=dict)
    source: str = "default"
    synonym_of: str | None = None
    deprecated: bool = False


@dataclass(frozen=True)
class Library:
    """One MPI installation.

    ``family`` is one of :func:`runner.mpi.families.families`; ``version`` as the library prints it;
    ``bin`` the directory of its commands.  ``params`` is filled by discovery, empty where the
    library cannot tell.
    """

    family: str
    version: str
    bin: str
    launcher: str
    params: dict[str, ParamInfo] = field(default_factory=dict)

    @property
    def version_tuple(self) -> tuple[int, ...]:
        """(5, 0, 11) for "5.0.11"; anything after the digits ("rc1") is left out."""
        parts = []
        for word in self.version.split("."):
            digits = ""
            for char in word:
                if not char.isdigit():
                    break
                digits += char
            if not digits:
                break
            parts.append(int(digits))
        return tuple(parts)
