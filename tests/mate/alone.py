"""A profiling library that ends a program in which two threads are inside MPI at once.

It wraps every function that ``mpi.h`` declares, except those that MPI allows at any time (MPI 4.0,
section 11.6.1).  A call lasts a little longer than it would, so that a second one meets it.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

AT_ANY_TIME = {
    *("MPI_Initialized", "MPI_Finalized", "MPI_Query_thread", "MPI_Is_thread_main"),
    *("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Get_version", "MPI_Get_library_version"),
    *("MPI_Error_class", "MPI_Error_string"),
}
DECLARATION = re.compile(r"\b(int|double|MPI_Aint)\s+(MPI_[A-Z]\w+)\s*\(([^;{}]*?)\)\s*[^;{}()]*;")
HEAD = """
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

static volatile long owner;
static const char *volatile inside = "?";
static __thread int depth;
static long calls;

static void enter(const char *name)
{
    long self = syscall(SYS_gettid), other = 0;
    if (depth++) return;
    __atomic_compare_exchange_n(&owner, &other, self, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (other) {
        fprintf(stderr, "two threads inside MPI: %s beside %s\\n", name, inside);
        _exit(7);
    }
    inside = name;
    __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    usleep(strcmp(name, "MPI_Abort") ? 10 : 100000);
}

static void leave(void)
{
    if (--depth == 0) __atomic_store_n(&owner, 0, __ATOMIC_SEQ_CST);
}

__attribute__((destructor)) static void tell(void)
{
    const char *place = getenv("ALONE_CALLS");
    FILE *file = place ? fopen(place, "a") : NULL;
    if (file) fprintf(file, "%ld\\n", calls);
    if (file) fclose(file);
}
"""


def build(mpicc: str, place: Path) -> Path:
    """The compiled library; ``place`` is an empty directory."""
    (place / "header.c").write_text("#include <mpi.h>\n")
    shown = subprocess.run(
        [mpicc, "-E", "-P", "header.c"], cwd=place, check=True, capture_output=True, text=True
    )
    wrapped = {
        name: _wrapper(kind, name, arguments)
        for kind, name, arguments in DECLARATION.findall(shown.stdout)
        if name not in AT_ANY_TIME and "..." not in arguments
    }
    for name in ("MPI_Isend", "MPI_Type_size", "MPI_Abort", "MPI_Reduce_local", "MPI_Testsome"):
        assert name in wrapped, name
    (place / "alone.c").write_text(HEAD + "".join(wrapped.values()))
    library = place / "libalone.so"
    command = [mpicc, "-O1", "-w", "-fPIC", "-shared", "-o", str(library), "alone.c"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=120)
    return library


def _wrapper(kind: str, name: str, arguments: str) -> str:
    """C text that notes the call and passes it on."""
    given = [] if arguments.strip() == "void" else _split(arguments)
    names = ", ".join(_name(a) for a in given)
    return (
        f'{kind} {name}({arguments}) {{ enter("{name}"); {kind} result_ = P{name}({names}); '
        "leave(); return result_; }\n"
    )


def _split(arguments: str) -> list[str]:
    """The declarations between commas that are in no parentheses."""
    found, depth = [""], 0
    for letter in arguments:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def _name(declaration: str) -> str:
    """``buf`` of ``const void *buf``, ``ranges`` of ``int ranges[][3]``."""
    return re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", declaration))[-1]
