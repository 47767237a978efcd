"""The variables of UCX and libfabric, and the kernel's copy between processes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from runner.mpi.discover import find_library
from runner.mpi.transport_libraries import (
    LIBFABRIC,
    parse_libfabric,
    parse_ucx,
    read_variables,
    transport_libraries,
)
from runner.single_copy import kernel_copy_works

UCX_TEXT = """\
# UCX library configuration file
# Uncomment to modify values

#
# UCS logging level.
#
# syntax:    [FATAL|ERROR|WARN]
#
UCX_LOG_LEVEL=WARN

#
# Set TCP_NODELAY.
#
# syntax:    <y|n>
#
UCX_TCP_NODELAY=y

#
# Transports.
#
# syntax:    comma-separated list of: [bt|none]
#
UCX_TLS=all
"""


def test_the_configuration_of_ucx_is_read() -> None:
    params = parse_ucx(UCX_TEXT)
    assert list(params) == ["UCX_LOG_LEVEL", "UCX_TCP_NODELAY", "UCX_TLS"]
    level = params["UCX_LOG_LEVEL"]
    assert (level.only_words, level.default) == (("FATAL", "ERROR", "WARN"), "WARN")
    assert level.help.startswith("UCS logging level.")
    assert params["UCX_TCP_NODELAY"].type == "bool"
    # A list may be negated, so it is no enumeration.
    assert not params["UCX_TLS"].enum


def test_the_rows_of_libfabric_are_read() -> None:
    text = '[["FI_A", "Size (default: 1024)", 3], ["FI_B", "On (default: provider specific)", 2]]'
    params = parse_libfabric(text)
    assert (params["FI_A"].type, params["FI_A"].default) == ("size_t", "1024")
    assert (params["FI_B"].type, params["FI_B"].default) == ("bool", "")
    assert parse_libfabric("no JSON") == parse_libfabric('[["FI_A"]]') == {}


def test_a_file_that_is_no_library_lists_nothing(tmp_path: Path) -> None:
    file = tmp_path / "libfabric.so.1"
    file.write_text("text")
    assert read_variables(LIBFABRIC, file) == {}
    assert read_variables(LIBFABRIC, tmp_path / "none") == {}


@pytest.mark.mpi
def test_the_installed_libraries_list_their_variables() -> None:
    listed = {one.name: one.params for one in transport_libraries(find_library(None))}
    if not listed:
        pytest.skip("neither UCX nor libfabric below this MPI")
    usual = {"UCX": "UCX_TLS", "libfabric": "FI_PROVIDER"}
    assert all(usual[name] in params for name, params in listed.items())


def test_the_copy_is_tried_between_two_children() -> None:
    answer = kernel_copy_works()
    if not hasattr(ctypes.CDLL(None), "process_vm_readv"):
        assert answer is None
    else:
        assert answer in (True, False)
