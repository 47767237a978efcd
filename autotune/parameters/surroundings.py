"""What the environment and the parameter files of this machine set, and its faults."""

from __future__ import annotations

import os

from autotune.parameters.catalogue import Catalogue
from autotune.parameters.fault import Fault, faults_of
from autotune.parameters.request import Request, from_file, from_variables
from runner.mpi.discover import adapter
from runner.mpi.library import Library


def surrounding_requests(library: Library, catalogue: Catalogue) -> list[Request]:
    """The values that the environment and parameter files set."""
    variables = dict(os.environ)
    requests = list(from_variables(variables, catalogue))
    for path, lines in adapter(library).settings_files(variables).items():
        requests += from_file(path, lines, catalogue)
    return requests


def surrounding_faults(library: Library) -> list[Fault]:
    """The faults of parameters that are set for every launch here.

    Those without effect are left out, because the transport is not known.
    """
    catalogue = Catalogue.of(library)
    requests = surrounding_requests(library, catalogue)
    if not requests:
        return []
    return [one for one in faults_of(requests, catalogue) if one.kind != "no_effect"]
