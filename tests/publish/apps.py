"""Applications in C: their ranks start in a fraction of the time of those in Python."""

from __future__ import annotations

from pathlib import Path

from runner.mpi.library import Library
from tests.mpis import built

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A gain that is there, has shrunk, is gone, or comes and goes, as the file "mode" says.  The noise
   is up to 0.1 %; the runs are counted. */
int main(int count, char **words) {
    char mode[16] = "", name[4096];
    int tuned = getenv("OMPI_MCA_btl_sm_eager_limit") != NULL, runs = 0;
    double faster = 1.0;
    MPI_Init(&count, &words);
    snprintf(name, sizeof name, "%s/mode", words[1]);
    FILE *file = fopen(name, "r");
    if (!file || fscanf(file, "%15s", mode) != 1) return 1;
    fclose(file);
    snprintf(name, sizeof name, "%s/count-%d", words[1], tuned);
    if ((file = fopen(name, "r"))) {
        if (fscanf(file, "%d", &runs) != 1) return 1;
        fclose(file);
    }
    file = fopen(name, "w");
    fprintf(file, "%d", runs + 1);
    fclose(file);
    if (tuned && !strcmp(mode, "there")) faster = 1.25;
    if (tuned && !strcmp(mode, "shrunk")) faster = 1.06;
    if (tuned && !strcmp(mode, "open")) faster = runs % 2 ? 1.6 : 0.7;
    srand(2 * runs + tuned + 1);
    double noise = (rand() % 2001 - 1000) * 1e-6;
    printf("time %.15f\\n", 0.1 / faster * (1 + noise));
    MPI_Finalize();
    return 0;
}
"""


def define_flip(work: Path, library: Library) -> None:
    """The application ``flip``; it prints the figure that the file ``mode`` in ``work`` says."""
    _define(work, "flip", [str(built(library, work, PROGRAM)), str(work)])


def define_ping_pong(work: Path, library: Library) -> None:
    """The application ``ping-pong``: two ranks and some messages."""
    _define(work, "ping-pong", [str(built(library, work))])


def _define(work: Path, name: str, command: list[str]) -> None:
    apps = work / "configs" / "apps"
    apps.mkdir(parents=True, exist_ok=True)
    (apps / f"{name}.toml").write_text(
        f"name = '{name}'\ncommand = {command}\nmetric = 'time ([0-9.e-]+)'\ndefault_input = ''\n"
    )
