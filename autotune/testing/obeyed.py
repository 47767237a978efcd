"""The contract of formats on real launches: a file is published only if a launch obeys it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from autotune.config.cluster import Cluster, load_cluster
from autotune.errors import UsageError, WorkError
from autotune.publish.content import Content
from autotune.publish.formats import Format
from autotune.publish.probe import Prober
from runner.mpi.discover import find_library
from runner.mpi.library import Library

UNKNOWN = "no_such_parameter_of_any_library"


class ObeyedContract:
    """Launches that load a file of a format.  Subclass it with a fixture ``fmt``.

    ``wanted`` names the MPI library as ``--mpi`` does; ``content`` may be overridden, too.
    """

    wanted: ClassVar[str | None] = None
    """The library as ``--mpi`` names it; None: the first one on PATH."""

    @pytest.fixture
    def fmt(self) -> Format:
        raise NotImplementedError("define the fixture fmt, which returns the format")

    @pytest.fixture
    def library(self) -> Library:
        """The library that loads the files."""
        return find_library(self.wanted)

    @pytest.fixture
    def cluster(self) -> Cluster:
        """The cluster definition whose launch options are used."""
        return load_cluster("local")

    @pytest.fixture
    def content(self, fmt: Format, library: Library) -> Content:
        """What the file sets: values that are not the defaults, and that a launch shows."""
        return fmt.sample(library)

    @pytest.fixture
    def prober(
        self,
        library: Library,
        cluster: Cluster,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> Iterator[Prober]:
        """What starts the launches, in an empty HOME."""
        monkeypatch.setenv("HOME", str(tmp_path))
        with Prober(library, cluster) as opened:
            yield opened

    def test_has_a_sample(self, fmt: Format, library: Library, content: Content) -> None:
        assert fmt.obstacle(library) is None, fmt.obstacle(library)
        assert content.names, (
            f"{fmt.name} has no sample for {library.family}: override Format.sample, or the "
            "fixture content"
        )

    def test_a_file_is_obeyed(self, fmt: Format, content: Content, prober: Prober) -> None:
        """All values of the file are seen in force in a launch that loads it."""
        sentence = prober.prove(
            fmt, content, lambda shown: fmt.prologue + fmt.render(shown, prober.library)
        )
        assert sentence

    def test_a_file_without_its_values_is_found_out(
        self, fmt: Format, content: Content, prober: Prober
    ) -> None:
        """What was seen above came from the text of the file, not from the launch line."""
        with pytest.raises((UsageError, WorkError)):
            prober.prove(fmt, content, lambda _: fmt.prologue)

    def test_a_name_that_the_library_does_not_have_is_refused(
        self, fmt: Format, prober: Prober
    ) -> None:
        content = fmt.part(Content({"mca": {UNKNOWN: "1"}}), prober.library)
        if not content.names:
            return  # The format leaves such names out, or has no parameters at all.
        with pytest.raises((UsageError, WorkError)):
            prober.prove(
                fmt, content, lambda shown: fmt.prologue + fmt.render(shown, prober.library)
            )
