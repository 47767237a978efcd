"""The parameters of PRRTE and PMIx, of closed components, and the lines of parameter files."""

from __future__ import annotations

from pathlib import Path

from runner.mpi.openmpi.parameters import parameter_lines, parse_ompi_info
from runner.mpi.openmpi.runtime_parameters import parse_prte_info, read_prte

LISTED = """\
                    PRTE: 3.0.14
                 MCA plm: ssh (MCA v2.1.0, API v2.0.0, Component v3.0.11)
                 MCA plm: "plm_ssh_num_concurrent" (current value: "128",
                          data source: default, type: int)
                          How many plm_ssh_agent instances to invoke
                          concurrently (must be > 0)
               MCA rmaps: "rmaps_default_mapping_policy" (current value:
                          "core", data source: environment, type: string,
                          deprecated, synonym of: mapby)
                          Default mapping Policy
                MCA pmix: "pmix_maxfd" (current value: "1024", data source:
                          default, type: int)
                 MCA bad: "broken" (nothing of the kind)
             some text that is none
               MCA state: "state" (current value: "", data source: default,
                          type: unsigned_int)
"""


def test_entries_over_several_lines_are_read() -> None:
    params = parse_prte_info(LISTED)
    assert sorted(params) == [
        "plm_ssh_num_concurrent", "pmix_maxfd", "rmaps_default_mapping_policy", "state"
    ]  # fmt: skip
    one = params["plm_ssh_num_concurrent"]
    assert (one.type, one.default, one.framework, one.source) == ("int", "128", "plm", "default")
    assert one.help.endswith("concurrently (must be > 0)")
    other = params["rmaps_default_mapping_policy"]
    assert (other.default, other.source) == ("core", "environment")
    assert (other.synonym_of, other.deprecated) == ("mapby", True)
    assert (params["state"].type, params["state"].default) == ("unsigned", "")


def test_without_the_command_there_are_none(tmp_path: Path) -> None:
    assert read_prte(tmp_path) == {}


def test_parameters_of_closed_components_are_told_apart() -> None:
    rows = [
        "mca:btl:openib:param:btl_openib_flags:value:1",
        "mca:btl:openib:param:btl_openib_flags:disabled:true",
        "mca:btl:tcp:param:btl_tcp_flags:value:2",
        "mca:btl:tcp:param:btl_tcp_flags:disabled:false",
    ]
    text = "\n".join(rows)
    assert list(parse_ompi_info(text)) == ["btl_tcp_flags"]
    assert list(parse_ompi_info(text, closed=True)) == ["btl_openib_flags"]


def test_lines_of_files_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "mca-params.conf"
    file.write_text("# btl = x\n\nbtl = self,sm\n--mca pml ob1\n-x UCX_TLS=sm\nnothing\n")
    assert parameter_lines(file) == [(3, "btl", "self,sm"), (4, "pml", "ob1"), (5, "UCX_TLS", "sm")]
    assert parameter_lines(tmp_path / "none") == []
