"""A system file lies where its library reads it, and is no part of a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.publish.formats import find
from autotune.publish.neutral import neutral
from runner.mpi.openmpi import parameters
from tests.mpis import on_path
from tests.publish.conftest import put_in_place

pytestmark = pytest.mark.mpi


def test_a_distributions_system_file(
    home: Path, work: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is not below the prefix; here it is another one, for no test writes there."""
    library = on_path("openmpi-4.1")
    etc = work / "etc" / "openmpi"
    etc.mkdir(parents=True)
    said = parameters._reported_paths

    def elsewhere(command: str) -> tuple[Path | None, Path | None]:
        return said(command)[0], etc

    monkeypatch.setattr(parameters, "_reported_paths", elsewhere)
    path = find("openmpi-system").default_path("local", library)
    assert path == etc / "openmpi-mca-params.conf"
    path.write_text("btl_vader_max_send_size = 65536\n")
    put_in_place("openmpi-system", path, library)
    assert "btl_sm_eager_limit" in path.read_text()
    launch = neutral(library, {"HOME": str(home)})
    assert launch.files == (path,)
    copy = Path(launch.surroundings.env["OPAL_SYSCONFDIR"], path.name).read_text()
    assert "btl_vader_max_send_size" in copy
    assert "btl_sm_eager_limit" not in copy
