"""The parameter files that an Open MPI reads: where they lie, and what they say."""

from __future__ import annotations

from pathlib import Path

from runner.mpi.library import Library

PARAM_FILES = "OMPI_MCA_mca_base_param_files"


def parameter_files(library: Library, environment: dict[str, str]) -> list[Path]:
    """The user's and the system's files, whether they exist or not (field.md G)."""
    home = Path(environment.get("HOME", "/nonexistent"))
    etc = Path(environment.get("OPAL_SYSCONFDIR") or Path(library.bin).parent / "etc")
    runtime_etc = Path(environment.get("PRTE_SYSCONFDIR") or etc)
    prrte = library.version_tuple >= (5,)
    runtime = ("prte", "pmix") if prrte else ()
    user = home / ".openmpi" / "mca-params.conf"
    files = [user, etc / "openmpi-mca-params.conf"]
    info = library.params.get("mca_base_param_files")
    if (named := environment.get(PARAM_FILES)) is not None:
        # The list takes the place of the library's own; 5.0's launcher reads the user's file
        # all the same.
        files = [user] if prrte else []
        files += [Path(word) for word in named.split(",") if named != "none"]
    elif info and "OPAL_SYSCONFDIR" not in environment:
        # The user's own, first in it, is that of whoever asked ompi_info: another HOME, maybe.
        files.append(Path(info.default.split(",")[-1]))
    files += [etc / "openmpi-mca-params-override.conf"]
    for part in runtime:
        files += [
            home / f".{part}" / "mca-params.conf",
            runtime_etc / f"{part}-mca-params.conf",
        ]
    return list(dict.fromkeys(files))


def read_parameter_file(path: Path) -> dict[str, str]:
    """``name = value`` lines of an MCA parameter file; empty where there is no readable file."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return {}
    values = {}
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark and not line.lstrip().startswith("#"):
            values[name.strip()] = value.strip()
    return values
