"""Why a program failed, from what real programs printed under real launchers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runner.outcome.failure_message import LONGEST, failure_message, joined_exit_code, telling_lines
from tests.case_table import case_table

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "complaints.json").read_text()
)
"""What make_complaints.py recorded, each with the words that are expected."""


def test_recorded() -> None:
    for row in ROWS:
        case = row["library"], row["case"]
        words = failure_message(row["stderr"], row["stdout"]).words
        assert words == row["expected"], case
        assert words.isprintable(), case
        assert "Exit code:" not in words, case  # data
        assert "End of error message" not in words, case  # data


@case_table(
    ("stderr", "words", "asked"),
    [
        (
            "forrtl: severe (24): end-of-file during read, unit 5, file /dev/null\nImage   PC\n",
            "forrtl: severe (24): end-of-file during read, unit 5, file /dev/null",
            True,
        ),
        (
            "forrtl: severe (24): end-of-file during read, unit 17, file /home/user/mesh.dat\n",
            "forrtl: severe (24): end-of-file during read, unit 17, file /home/user/mesh.dat",
            False,
        ),
        (
            "the mesh has no cells\nsrun: error: n1: task 1: Exited with exit code 3\n",
            "the mesh has no cells",
            False,
        ),
        (
            "residual error: 1.5e-3\nWarning: could not pin memory\nlast step 7\n"
            + "-" * 74
            + "\nmpirun detected that one or more processes exited with non-zero status\n",
            "last step 7",
            False,
        ),
    ],
)
def test_others(stderr: str, words: str, asked: bool) -> None:
    found = failure_message(stderr)
    assert (found.words, found.about_input) == (words, asked)


def test_who_asks_for_standard_input() -> None:
    asked = {(r["library"], r["case"]): failure_message(r["stderr"]).about_input for r in ROWS}
    assert {case for (_, case), told in asked.items() if told} == {
        "fortran end of input",  # data
        "python end of input",  # data
    }


@case_table(
    ("code", "joined", "words"),
    [
        (6, 15, "Aborted (signal 6)"),
        (9, 15, "Aborted (signal 6)"),
        (7, 15, "Bus error (signal 7)"),
        (4, 13, "Illegal instruction (signal 4)"),
        # An exit code of 1, and the others were killed.
        (1, 9, ""),
        (15, 15, ""),
        (9, 9, "Killed (signal 9)"),
    ],
)
def test_states_that_mpich_joins(code: int, joined: int, words: str) -> None:
    """Its launcher kills the other ranks, and says the states of all, joined by "or"."""
    names = {9: "Killed", 13: "Broken pipe", 15: "Terminated"}
    printed = (
        f"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: {code}\n"
        f"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {names[joined]} (signal {joined})\n"
    )
    found = failure_message("", printed).words
    assert found.startswith(words)
    assert words or "signal" not in found
    assert joined_exit_code(printed) == (1 if (code, joined) == (1, 9) else None)


def test_a_long_complaint_is_cut() -> None:
    assert len(failure_message("error: " + "x" * 10_000).words) == LONGEST


def test_lines_for_people_are_without_traces_and_conclusions() -> None:
    for row in ROWS:
        lines = telling_lines(row["stderr"], row["stdout"])
        assert len(lines) <= 8
        assert not any("\0" in line for line in lines)
        if row["case"] == "exit with words":  # data
            assert lines == ["solver: the matrix is singular at row 7"]  # data
        if row["case"] == "no such component":  # data
            assert lines[0].startswith(("No components were", "PML ucx"))  # data


WARNINGS = [
    "libibverbs: Warning: couldn't load driver 'libmlx5.so': cannot open shared object file",
    "[vm:12] Read -1, expected 65536, errno = 1",
    "[1700000000.123456] [vm:12:0]          sock.c:344  UCX  WARN  cannot open /dev/knem",
    "libfabric:12:1700000000::core:core:ofi_register_provider():476<warn> no such provider",
    (
        "[vm:12] pmix_mca_base_component_repository_open: unable to open mca_gds_ds21: "
        "cannot open shared object file: No such file or directory (ignored)"
    ),
    "[vm:12] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 169",
    "sh: warning: setlocale: LC_ALL: cannot change locale (xx_XX)",
    "manpath: can't set the locale; make sure $LC_* and $LANG are correct",
    "prog.py:3: DeprecationWarning: invalid escape sequence",
    "Note: The following floating-point exceptions are signalling: IEEE_INVALID_FLAG",
    "Warning: ieee_invalid is signaling",
    "INFO: no such cache, which will be made",
]
FRAMES = [
    "WARNING: There was an error initializing an OpenFabrics device.\n\n  Local host:   vm",
    (
        "A requested component was not found, or was unable to be opened.  This\n"
        "means that this component is either not installed or is unable to be\nused.\n\n"
        "Host:      vm\nFramework: btl\nComponent: openib"
    ),
    (
        "A deprecated MCA variable value was specified on the command line. Deprecated\n"
        "variables cannot be used for ever.\n\n  Deprecated variable: orte_base"
    ),
    (
        "[[1234,1],0]: A high-performance Open MPI point-to-point messaging module\n"
        "was unable to find any relevant network interfaces:\n\nModule: OpenFabrics (openib)\n"
        "  Host: vm\n\nAnother transport will be used instead."
    ),
    (
        "An attempt was made to open a shared memory backing file, but\nthe attempt failed:\n\n"
        "  File:  /tmp/x\n\nThe subsystem will be disabled, but your job will continue."
    ),
]
RULE = "-" * 74
HWLOC = (
    f"{'*' * 76}\n* hwloc 2.0.4 received invalid information from the operating system.\n*\n"
    "* L3 intersects with NUMANode!\n* Error occurred in topology.c line 1384\n*\n"
    f"* hwloc will now ignore this invalid topology information and continue.\n{'*' * 76}"
)
ABORT = f"{RULE}\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n{RULE}\n"
TRAILER = (
    f"{RULE}\nPrimary job  terminated normally, but 1 process returned\n"
    f"a non-zero exit code. Per user-direction, the job has been aborted.\n{RULE}\n"
)
HARMLESS = [*WARNINGS, *(f"{RULE}\n{text}\n{RULE}" for text in FRAMES), HWLOC]


@case_table("end", [ABORT, TRAILER])
@case_table("reason", ["ERROR: mesh has 7 cells, and 8 are needed", "the mesh is odd"])
def test_a_warning_is_not_the_reason(end: str, reason: str) -> None:
    """The program's own words are, whichever stream and place they have."""
    streams = [
        (warning, stderr, stdout)
        for warning in HARMLESS
        for stderr, stdout in [
            (f"{warning}\n{reason}\n{warning}\n{end}", "step 7\n"),
            (f"{warning}\n{end}", f" step 7\n {reason}\n"),
            (f"{end}{warning}\n", f"{reason}\n"),
        ]
    ]
    for warning, stderr, stdout in streams:
        words = failure_message(stderr, stdout).words
        first = warning.strip("-*\n").splitlines()[0][-20:]
        assert reason in words
        assert words == reason or reason not in stderr
        lines = telling_lines(stderr, stdout)
        assert reason in lines[-1]
        assert not any(first in line for line in lines)


@case_table("warning", HARMLESS)
def test_a_warning_without_anything_else_is_told(warning: str) -> None:
    assert len(failure_message(f"{warning}\n{TRAILER}").words) > len(failure_message(TRAILER).words)
    assert telling_lines(f"{warning}\n{TRAILER}")


@case_table(
    "error",
    [
        "Error: the old file is deprecated and cannot be read (see the note)",
        "fatal: cannot continue after a warning",
        "/home/u/warning/prog: cannot open the mesh",
        "solver_info: invalid size",
        "cannot read warnings.dat",
    ],
)
def test_an_error_that_speaks_of_warnings(error: str) -> None:
    assert failure_message(f"Warning: cannot pin memory\n{error}\nlast step 7\n").words == error


@case_table("text", FRAMES)
def test_a_library_that_does_not_start_says_why_in_its_warning(text: str) -> None:
    stderr = f"{RULE}\n{text}\n{RULE}\n[vm:1] *** An error occurred in MPI_Init\n"
    assert failure_message(stderr).words.startswith(" ".join(text.split())[:25])
    details = [line for line in text.splitlines() if line.startswith(("Framework", "Component"))]
    assert set(details) <= set(telling_lines(stderr, most=4))


def test_a_socket_that_closed_after_the_failure_is_no_reason() -> None:
    """Open MPI 4.1.4, now and then, where a rank does not get through MPI_Init."""
    rule = "-" * 74
    broken = "[vm:41] pmix_ptl_base: send_msg: write failed: Broken pipe (32) [sd = 23]"
    frame = f"{rule}\nNo components were able to be opened in the pml framework.\n{rule}"
    first = failure_message(f"{frame}\n").words
    assert first.startswith("No components")
    assert failure_message(f"{broken}\n{frame}\n").words == first
    assert failure_message(f"{frame}\n{broken}\n").words == first


def test_a_heading_is_followed_by_its_message() -> None:
    text = "Program:     gmx mdrun\n\nFatal error:\nThere is no domain for 7 ranks.\n\nFor more see"
    words = failure_message(f"{RULE}\n{text}\n{RULE}\n").words
    assert "There is no domain for 7 ranks" in words


def test_frames_of_standard_output_are_the_programs_own() -> None:
    printed = f"{RULE}\nSolver\n{RULE}\nstep 1\n{RULE}\n ERROR: mesh has 7 cells\n"
    assert failure_message(ABORT, printed).words == "ERROR: mesh has 7 cells"
