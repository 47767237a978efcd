"""The contract of formats of published files, and the content and evidence for its tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.collective_rules import Rule
from autotune.config.cluster import Cluster
from autotune.errors import UsageError, WorkError
from autotune.publish import formats
from autotune.publish.block import BEGIN
from autotune.publish.content import Content, Evidence
from autotune.publish.formats import Format
from autotune.publish.formats.mpich import MpichTree
from autotune.publish.formats.scripts import Script
from autotune.publish.header import read_header
from autotune.publish.install import Text
from autotune.publish.plan import FilePlan, plan_files
from autotune.publish.published_text import edit
from autotune.publish.source import PublicationSource
from runner.mpi.library import Library

OLD = Library("openmpi", "4.1.8", "/opt/old/bin", "/opt/old/bin/mpirun")
NEW = Library("openmpi", "5.0.11", "/opt/new/bin", "/opt/new/bin/mpirun")
MPICH = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpirun")
IMPI = Library("impi", "2021.18.1", "/opt/impi/bin", "/opt/impi/bin/mpirun")
OWN = {"": NEW, "openmpi": NEW, "mpich": MPICH, "impi": IMPI}
"""A library that reads the formats of a family."""
CLUSTER = Cluster(name="local")
FULL = Content(
    {
        "mca": {
            "btl_sm_eager_limit": "8192",
            "coll_tuned_bcast_algorithm": "6",
            "coll_tuned_use_dynamic_rules": "1",
            "MPIR_CVAR_CH4_SHM_POSIX_EAGER": "iqueue",
            "I_MPI_ADJUST_BCAST": "3",
        },
        "prte": {"prte_some_parameter": "1"},
        "pmix": {"pmix_some_parameter": "2"},
        "placement": {"map_by": "slot:PE=2", "bind_to": "core"},
        "env": {"OMP_PROC_BIND": "close"},
    }
)
TREES = Content(rules=(Rule("bcast", 1, 0, "MPIR_Bcast_intra_binomial"),))


def library_of(fmt: Format) -> Library:
    """A library that reads the format."""
    return OWN.get(fmt.family, NEW)


def content_of(fmt: Format, content: Content = FULL) -> Content:
    """The part of ``content`` that the format can express."""
    return fmt.part(TREES if isinstance(fmt, MpichTree) else content, library_of(fmt))


def evidence(**words: object) -> Evidence:
    """Evidence of a study, with the given fields replaced."""
    defaults = {"source": "study:abc", "proven": True, "status": "recommended", "setting": "a=1"}
    return Evidence(**defaults | words)  # type: ignore[arg-type]


def plan_file(fmt: Format, path: Path, proof: Evidence | None = None) -> FilePlan:
    """A planned file of the format at ``path``."""
    proposal = PublicationSource(content_of(fmt), proof or evidence(), (), True)
    return plan_files(proposal, [fmt], CLUSTER, library_of(fmt), path, unproven=True)[0]


def rendered_text(fmt: Format, path: Path, proof: Evidence | None = None) -> Text:
    one = plan_file(fmt, path, proof)
    return one.text(one.content, library_of(fmt), "seen")


SAFE = st.text("abcXYZ0189_.,:^+=/@%-", min_size=1, max_size=20)
HOSTILE = st.text(max_size=40).filter(lambda t: any(not c.isalnum() for c in t))


class FormatContract:
    """The tests of a format.  Subclass it with a fixture ``fmt``."""

    @pytest.fixture
    def fmt(self) -> Format:
        raise NotImplementedError("define the fixture fmt, which returns the format")

    @pytest.fixture(autouse=True)
    def known_format(self, fmt: Format, monkeypatch: pytest.MonkeyPatch) -> None:
        """The format is known by its name, as that of an installed package is."""
        if fmt.name not in formats.names():
            monkeypatch.setattr(formats, "ALL", (*formats.ALL, fmt))

    def test_describes_itself(self, fmt: Format) -> None:
        assert fmt.name
        assert fmt.summary
        assert fmt.suffix.startswith(".")

    def test_says_a_part_of_its_content(self, fmt: Format) -> None:
        part = content_of(fmt)
        assert part.names
        assert {n for n in part.names if n[0] != "rules"} <= FULL.names

    def test_says_nothing_of_nothing(self, fmt: Format) -> None:
        assert not fmt.part(Content(), library_of(fmt)).names

    @pytest.mark.parametrize("library", [OLD, NEW, MPICH, IMPI], ids=lambda lib: lib.version)
    def test_does_not_obey_a_library_of_another_family(self, fmt: Format, library: Library) -> None:
        why = fmt.obstacle(library)
        if fmt.family and fmt.family != library.family:
            assert why is not None
            assert library.family in why

    def test_the_header_comes_back_from_the_file(self, fmt: Format, tmp_path: Path) -> None:
        one = plan_file(fmt, tmp_path / "f")
        text = one.text(one.content, library_of(fmt), "seen")
        header = read_header(text.whole)
        assert header is not None
        assert header.format == fmt.name
        assert header.content == one.content
        assert header.evidence == evidence()
        assert header.probe == "seen"
        assert edit(tmp_path / "f", text, header) is None

    def test_says_how_to_undo_it(self, fmt: Format, tmp_path: Path) -> None:
        assert "undo: autotune unpublish" in rendered_text(fmt, tmp_path / "f").whole

    def test_has_a_label_where_it_lacks_proof(self, fmt: Format, tmp_path: Path) -> None:
        one = plan_file(fmt, tmp_path / "f", evidence(proven=False))
        whole = one.text(one.content, library_of(fmt), "x").whole
        assert "NOT PROVEN TO BE FASTER" in whole
        assert ("UNPROVEN:" in whole) == (one.obstacle is not None)

    def test_has_lines_that_every_library_reads(self, fmt: Format, tmp_path: Path) -> None:
        long = evidence(
            programs=[f"program-{n}" for n in range(400)], check=({"word": "x y " * 2000},)
        )
        whole = rendered_text(fmt, tmp_path / "f", long).whole
        header = read_header(whole)
        assert header is not None
        assert header.evidence.check == long.check
        begin, end = whole.index(BEGIN), whole.index("checksum: sha256:")
        assert max(map(len, whole[begin:end].splitlines())) < 2048

    def test_notices_any_edit(self, fmt: Format, tmp_path: Path) -> None:
        path = tmp_path / "f"
        text = rendered_text(fmt, path)
        assert not edited(path, text)
        unseen = [
            other for other in edits(text, max(1, len(text.whole) // 60)) if not edited(path, other)
        ]
        assert unseen == []
        for value in {v for group in content_of(fmt).groups.values() for v in group.values()}:
            # In the header, too, as an editor would replace it.
            side = None if text.side is None else text.side.replace(value, f"{value}7")
            assert edited(path, Text(text.main.replace(value, f"{value}7"), side))
        # Lines of others in the file are not part of the publication.
        assert edited(path, Text(f"{text.main} ", text.side)) is not fmt.merges

    @settings(
        max_examples=12,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(words=HOSTILE)
    def test_evidence_cannot_leave_its_comment(
        self, fmt: Format, tmp_path: Path, words: str
    ) -> None:
        plain = rendered_text(fmt, tmp_path / "f")
        hostile_evidence = evidence(
            setting=words,
            programs=(words,),
            machine=words,
            check=({"app": words, "program": [words]},),
        )
        hostile = rendered_text(fmt, tmp_path / "f", hostile_evidence)
        assert _directives(fmt, hostile) == _directives(fmt, plain)
        header = read_header(hostile.whole)
        assert header is not None
        assert header.evidence.setting == words

    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(name=st.one_of(st.just("a_name"), HOSTILE), value=st.one_of(st.just("1"), HOSTILE))
    def test_no_name_or_value_becomes_a_directive(self, fmt: Format, name: str, value: str) -> None:
        library = library_of(fmt)
        harmless = fmt.render(content_of(fmt), library)
        for group in ("mca", "prte", "pmix", "placement"):
            part = content_of(fmt)
            if group not in part.groups:
                continue
            try:
                body = fmt.render(part.with_value(group, name, value), library)
            except UsageError:
                continue
            assert all(c.isascii() and (c.isprintable() or c == "\n") for c in body)
            # The body has one more statement in each place that lists them, nothing else.
            assert body.count("\n") - harmless.count("\n") in (0, 1, 2)
            assert not set(value) & set("\n\r\"'`$\\;&|<>(){}[]#! \t")

    @settings(
        max_examples=3,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(value=SAFE)
    def test_its_own_reader_takes_values_literally(
        self, fmt: Format, tmp_path_factory: pytest.TempPathFactory, value: str
    ) -> None:
        if not isinstance(fmt, Script) or fmt.interpreter() is None:
            return
        library = library_of(fmt)
        name = {"mpich": "MPIR_CVAR_X", "impi": "I_MPI_X"}.get(library.family, "btl_x")
        content = Content({"mca": {name: value}})
        place = tmp_path_factory.mktemp("place")
        loading = fmt.stage(fmt.prologue + fmt.render(content, library), place, library)
        prefix = "OMPI_MCA_" if library.family == "openmpi" else ""
        assert loading.env == {prefix + name: value}

    def test_stages_only_in_the_private_place(
        self, fmt: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if isinstance(fmt, Script) and fmt.interpreter() is None:
            pytest.skip(f"none of {', '.join(fmt.interpreters)} is installed")
        home, place = tmp_path / "home", tmp_path / "place"
        (home / ".openmpi").mkdir(parents=True)
        (home / ".openmpi" / "mca-params.conf").write_text("a = 1\n", encoding="utf-8")
        place.mkdir()
        monkeypatch.setenv("HOME", str(home))
        text = rendered_text(fmt, tmp_path / "f").main
        fmt.stage(text, place, library_of(fmt))
        assert [p for p in home.rglob("*") if p.is_file()] == [home / ".openmpi/mca-params.conf"]
        assert (home / ".openmpi" / "mca-params.conf").read_text(encoding="utf-8") == "a = 1\n"
        assert any(p.is_file() and p.read_text(encoding="utf-8") == text for p in place.rglob("*"))

    def test_a_launch_loads_the_private_copy(
        self, fmt: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A launch is told where the copy is, or gets the values that it sets.

        Whether the library obeys it is seen in launches only: :class:`ObeyedContract`.
        """
        if isinstance(fmt, Script) and fmt.interpreter() is None:
            pytest.skip(f"none of {', '.join(fmt.interpreters)} is installed")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        library, content = library_of(fmt), content_of(fmt)
        loading = fmt.stage(fmt.prologue + fmt.render(content, library), tmp_path, library)
        launched = [*loading.env.values(), *loading.options]
        values = {value for group in content.groups.values() for value in group.values()}
        assert any(str(tmp_path) in word for word in launched) or (
            values and values <= set(launched)
        ), (
            f"stage() wrote a copy below {tmp_path}, but no launch loads it: {loading}; name the "
            "copy in Loading.options or Loading.env, or return the variables that it sets"
        )


def edits(text: Text, step: int = 1) -> Iterator[Text]:
    """The text with one character replaced, inserted or deleted at each ``step``-th position, and
    with each line deleted, doubled or moved after the next one."""
    whole, first = text.whole, len(text.side or "")

    def parted(changed: str, at: int) -> Text:
        """True if the change is in the file beside it, or in the file itself."""
        if text.side is None:
            return Text(changed)
        border = first + (len(changed) - len(whole) if at < first else 0)
        return Text(changed[border:], changed[:border])

    for at in range(0, len(whole), step):
        other = "x" if whole[at] != "x" else "y"
        for put_in in (other, other + whole[at], ""):
            yield parted(whole[:at] + put_in + whole[at + 1 :], at)
    lines = whole.splitlines(keepends=True)
    at = 0
    for number, line in enumerate(lines):
        before, after = lines[:number], lines[number + 1 :]
        yield parted("".join([*before, *after]), at)
        yield parted("".join([*before, line, line, *after]), at)
        if after and after[0] != line:
            yield parted("".join([*before, after[0], line, *after[1:]]), at)
        at += len(line)


def edited(path: Path, text: Text) -> bool:
    """True if the text at ``path`` is recognised as edited since autotune published it."""
    try:
        header = text.header
    except WorkError:  # Damaged.
        return True
    return header is None or edit(path, text, header) is not None


def _directives(fmt: Format, text: Text) -> list[str]:
    """The lines that affect a reader of the file."""
    if fmt.comment is None:
        return text.main.splitlines()
    begin, end = fmt.comment
    return [
        line
        for line in text.main.split("\n")
        if not (line.startswith(begin) and line.endswith(end))
        or (end and line.count(end.strip()) != 1)
    ]
