"""Whoever writes to the results database has no worker run anything: only its key's owner does."""

from __future__ import annotations

import grp
import json
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text
from syrupy.assertion import SnapshotAssertion

from autotune.errors import UsageError, WorkError
from autotune.space import Parameter, Setting, Space
from autotune.store import Store
from autotune.study.study_request import SearchRequest
from autotune.study.trial_store import StoredTrials
from autotune.workers.worker_request import WorkerRequest, requests_of
from autotune.workers.worker_trust import (
    TrustedRoles,
    judge_request,
    key_path,
    make_key,
    read_key,
    roles_for,
    sign,
    trust_path,
    trusted_roles,
)
from tests.cli.conftest import Cli
from tests.contract.store_samples import key
from tests.refusals import refused
from tests.servers import missing_for_postgres, new_schema, postgres_server

NO_SERVER = missing_for_postgres()


@pytest.fixture
def canary(work: Path) -> Path:
    """A program that leaves ``ran`` behind, in the empty current directory."""
    program = work / "canary.sh"
    program.write_text(f"#!/bin/sh\ntouch {work}/ran\n")
    program.chmod(0o755)
    return work / "ran"


def asked(canary: Path, **more: Any) -> WorkerRequest:
    target = more.pop("target", {"ranks": 1, "program": [f"{canary.parent}/canary.sh"]})
    search = SearchRequest.of("x", target=target, space="null", trials=1)
    return WorkerRequest(search, **({"cwd": str(canary.parent)} | more))


def begun(request: WorkerRequest, place: str = "r.db") -> str:
    """A study that asks its workers for this, signed; its hash."""
    with Store.open(place) as store:
        study = store.study(key())
        sign(store, study, request)
        return study.hash


def tamper(change: Any, place: str = "r.db") -> None:
    """What somebody does who can write to the file."""
    with sqlite3.connect(place) as raw:
        [(words,)] = raw.execute("SELECT request FROM study").fetchall()
        data = json.loads(words)
        change(data["requests"][0])
        raw.execute("UPDATE study SET request = ?", (json.dumps(data),))
    raw.close()


def other_program(request: dict[str, Any]) -> None:
    request["search"]["target"]["program"][-1] += "x"


def other_place(request: dict[str, Any]) -> None:
    request["cwd"] = "/"


def other_key(request: dict[str, Any]) -> None:
    mine = make_key()
    key_path().unlink()
    assert make_key() != mine


def no_key(request: dict[str, Any]) -> None:
    key_path().unlink()


def no_signature(request: dict[str, Any]) -> None:
    request["signature"] = request["key"] = ""


def another_study(request: dict[str, Any]) -> None:
    signed = make_key().sign(
        WorkerRequest(SearchRequest.from_json(request["search"], "here"), request["cwd"]), "f" * 64
    )
    request["signature"] = signed.signature


CHANGES = [other_program, other_place, another_study, other_key, no_key, no_signature]


def reason(text: str) -> str:
    """The reason for which a request is not trusted, as it is printed."""
    return re.split("[.:]", text.partition("not trusted: ")[2])[0]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_signed_is_shown_and_not_run(
    cli: Cli, canary: Path, change: Any, snapshot: SnapshotAssertion
) -> None:
    study = begun(asked(canary))
    tamper(change)
    outcome = cli("worker", study[:12], "--store", "r.db")
    assert outcome.code == 2
    said = outcome.err.replace("\n", " ")
    assert reason(said) == snapshot
    assert "[worker.untrusted_request]" in said
    assert "'search', '--ranks', '1'" in said
    place = "/" if change is other_place else str(canary.parent)
    assert f"directory: {place!r}" in said
    assert f"program:   ['{canary.parent}/canary.sh" in said
    assert "--trust" in said
    assert not canary.exists()
    # Asking made no key that would sign it later.
    assert key_path().exists() == (change is not no_key)


@pytest.mark.mpi
def test_what_is_signed_is_run(cli: Cli, library: object, canary: Path) -> None:
    """As far as the study's own key, which is not that of this program: then it is refused."""
    study = begun(asked(canary))
    outcome = cli("worker", study[:12], "--store", "r.db")
    assert outcome.code == 2
    assert "[worker.other_study]" in outcome.err


@pytest.mark.mpi
def test_trust_runs_what_was_shown(cli: Cli, library: object, canary: Path) -> None:
    """A study of the canary's own, asked for by a stranger."""
    words = asked(canary).search.words()
    at = words.index("--")
    words[at:at] = ["--join", "--no-guard", "--runs", "32", "--store", "r.db"]
    cli(*words)
    canary.unlink()
    with Store.open("r.db") as store:
        [summary] = store.studies()
        store.set_result(summary.id, "new", None)
    key_path().unlink()
    refused = cli("worker", "1", "--no-guard", "--store", "r.db")
    assert refused.code == 2
    assert not canary.exists()
    cli("worker", "1", "--no-guard", "--store", "r.db", "--trust")
    assert canary.exists()
    # Trusted once is not signed: the next one is asked again.
    assert read_key() is None
    assert cli("worker", "1", "--no-guard", "--store", "r.db").code == 2


def test_options_that_no_request_has_are_refused_even_if_trusted(cli: Cli, canary: Path) -> None:
    study = begun(asked(canary))

    def change(request: dict[str, Any]) -> None:
        request["search"]["json_out"] = str(canary)

    tamper(change)
    outcome = cli("worker", study[:12], "--store", "r.db", "--trust")
    assert outcome.code == 2
    assert "[config.invalid]" in outcome.err
    assert "json_out" in outcome.err
    assert not canary.exists()


def test_a_terminal_is_not_told_anything(cli: Cli, canary: Path) -> None:
    target = {"metric": "\x1b]0;owned\x07", "program": ["./a\x1b[2J"]}
    study = begun(asked(canary, target=target))
    key_path().unlink()
    outcome = cli("worker", study[:12], "--store", "r.db")
    assert outcome.code == 2
    assert "\x1b" not in outcome.err
    assert r"\x1b[2J" in outcome.err


def test_each_user_keeps_a_request(canary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users begin the same study in directories of their own."""
    places = ["/mine", "/yours"]
    for place in places:
        monkeypatch.setenv("XDG_DATA_HOME", str(canary.parent) + place)
        begun(asked(canary, cwd=place), "s.db")
    with Store.open("s.db") as store:
        study = store.get_study(1)
        assert [one.cwd for one in requests_of(study.request)] == places
        for place in places:
            monkeypatch.setenv("XDG_DATA_HOME", str(canary.parent) + place)
            verdict = judge_request(store, study)
            assert verdict is not None
            assert (verdict.request.cwd, verdict.trusted) == (place, True)


def test_a_trial_that_no_strategy_made_is_not_launched(work: Path) -> None:
    space = Space("s", (Parameter("eager", (1, 2)), Parameter("how", ("a", "b"))))
    for name, value in (("plm_ssh_agent", "/tmp/evil"), ("how", "$(id)"), ("eager", 3)):
        with Store.open(f"{name}.db") as store:
            study = store.study(key())
            good = Setting({"eager": 1, "how": "b"})
            store.add_trial(study.id, good.to_json(), good.key)
            trial_store = StoredTrials(store, study, space)
            trial_store.load()
            assert [t.setting for t in trial_store.trials] == [good]
            evil = Setting({name: value})
            store.add_trial(study.id, evil.to_json(), evil.key)
            with refused(WorkError, "study.damaged"):
                trial_store.load()
            with Store.open(f"{name}-2.db") as second:
                study = second.study(key())
                trial = second.add_trial(study.id, good.to_json(), good.key)
                second.finish_trial(trial.id, "ok", 0.5, {"effective": evil.key})
                with refused(WorkError, "study.damaged"):
                    StoredTrials(second, study, space).load()


@pytest.mark.slow
@pytest.mark.mpi
def test_a_stored_launch_line_is_made_anew(cli: Cli, open_mpi: object) -> None:
    """It is printed to be copied, and others may write to the database."""
    words = ["search", "--app", "jacobi3d", "--input", "tiny", "--strategy", "random"]
    words += ["--trials", "1", "--runs", "45", "--no-guard", "--store", "r.db"]
    assert cli(*words).code == 0
    for name, code in (("btl_sm_eager_limit", 0), ("plm_ssh_agent", 2)):
        with Store.open("r.db") as store:
            [summary] = store.studies()
            result = dict(store.get_study(summary.id).result or {})
            result |= {"status": "recommended", "mpirun": "rm -rf /", "gain": 0.1}
            result |= {"recommended": {"setting": {name: 8192}}, "gain_ci95": [0.05, 0.2]}
            store.set_result(summary.id, "recommended", result)
        outcome = cli(*words)
        assert outcome.code == code, outcome.text
        assert "rm -rf" not in outcome.text
        assert ("--mca btl_sm_eager_limit 8192" in outcome.out) == (code == 0)  # data


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hash", "../../../tmp/x"),
        ("hash", "a" * 63 + "\n"),
        ("key", "{"),
        ("key", "[]"),
        ("key", "{}"),
        ("request", "[]"),
        ("request", "["),
        ("result", "5"),
    ],
)
def test_a_damaged_study_is_told(cli: Cli, canary: Path, column: str, value: str) -> None:
    begun(asked(canary))
    with sqlite3.connect("r.db") as raw:
        raw.execute(f"UPDATE study SET {column} = ?", (value,))
    raw.close()
    outcome = cli("worker", "1", "--store", "r.db")
    assert outcome.code == 1
    assert "[store.damaged]" in outcome.err


# Roles of a server


def trust_file(content: str) -> Path:
    path = trust_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o644)
    return path


URL = "postgresql://me:secret@db.cluster/autotune?options=-csearch_path=x"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("postgresql://db.cluster/autotune", True),
        ("postgresql://somebody@db.cluster:5432/autotune", True),
        ("postgresql://db.cluster:5433/autotune", False),
        ("postgresql://other.cluster/autotune", False),
        ("postgresql://db.cluster/other", False),
    ],
)
def test_roles_are_trusted_on_one_database(url: str, found: bool) -> None:
    text = f'[[database]]\nurl = "{url}"\nroles = ["alice"]\n'
    assert roles_for(text, "t", make_url(URL)) == (frozenset({"alice"}) if found else None)


@pytest.mark.parametrize(
    ("content", "code", "key"),
    [
        ("[[database]]\n", "config.invalid", "database.0.url"),
        ('[[database]]\nurl = "sqlite:///x"\nroles = ["a"]\n', "trust.url", "sqlite:///x"),
        ('[[database]]\nurl = "postgresql://h"\nroles = ["a"]\n', "trust.url", "postgresql://h"),
        (
            '[[database]]\nurl = "postgresql://h/d"\nroles = []\n',
            "config.invalid",
            "database.0.roles",
        ),
        ("roles = 1\n", "config.invalid", "roles"),
        ("[", "config.syntax", "TOML"),
    ],
)
def test_a_damaged_trust_file_is_refused(content: str, code: str, key: str) -> None:
    trust_file(content)
    with refused(UsageError, code) as caught:
        trusted_roles(make_url(URL))
    assert key in str(caught.value)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_trust_file_that_others_may_write_is_refused(
    mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = grp.struct_group(("project", "x", os.getegid(), ["mallory"]))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: project)
    trust_file("").chmod(mode)
    with pytest.raises(UsageError) as refused:
        trusted_roles(make_url(URL))
    assert refused.value.code == "file.writable_by_others"
    assert trusted_roles(make_url("sqlite:///x")) is None


ROLES = '[[database]]\nurl = "postgresql://{}/autotune"\nroles = ["{}"]\n'


@pytest.fixture
def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ``trust.toml`` of a site, which names alice."""
    site = tmp_path / "the-site"
    site.mkdir()
    monkeypatch.setenv("AUTOTUNE_SITE", str(site))
    file = site / "trust.toml"
    file.write_text(ROLES.format("db.cluster", "alice"))
    file.chmod(0o644)
    return file


def test_the_sites_roles_count_where_the_user_names_none(site_file: Path) -> None:
    url = make_url(URL)
    assert trusted_roles(url) == TrustedRoles(frozenset({"alice"}), site_file)
    trust_file(ROLES.format("other.cluster", "bob"))
    assert trusted_roles(url) == TrustedRoles(frozenset({"alice"}), site_file)
    # The lists are not joined: the user's own narrows the site's.
    own = trust_file(ROLES.format("db.cluster", "me"))
    assert trusted_roles(url) == TrustedRoles(frozenset({"me"}), own)
    site_file.write_text("[")
    assert trusted_roles(url) == TrustedRoles(frozenset({"me"}), own)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_trust_file_of_the_site_that_others_may_write_is_refused(
    site_file: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = grp.struct_group(("project", "x", os.getegid(), ["mallory"]))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: project)
    site_file.chmod(mode)
    with refused(UsageError, "site.untrusted"):
        trusted_roles(make_url(URL))


def test_a_link_in_place_of_the_sites_trust_file_is_refused(site_file: Path) -> None:
    real = site_file.rename(site_file.with_name("real.toml"))
    site_file.symlink_to(real)
    with refused(UsageError, "site.untrusted"):
        trusted_roles(make_url(URL))


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give files away")
def test_the_sites_trust_file_belongs_to_root_or_the_sites_owner(site_file: Path) -> None:
    os.chown(site_file, 65534, 65534)
    with refused(UsageError, "site.untrusted"):
        trusted_roles(make_url(URL))
    os.chown(site_file.parent, 65534, 65534)
    assert trusted_roles(make_url(URL)) is not None
    os.chown(site_file, 0, 0)
    assert trusted_roles(make_url(URL)) is not None
    os.chown(site_file, 65533, 65533)
    with refused(UsageError, "site.untrusted"):
        trusted_roles(make_url(URL))


@pytest.mark.skipif(NO_SERVER is not None, reason=str(NO_SERVER))
def test_roles_that_may_write_studies_are_all_to_be_named(
    cli: Cli, canary: Path, snapshot: SnapshotAssertion
) -> None:
    with postgres_server() as server, new_schema(server) as url:
        study = begun(asked(canary), url)
        place = make_url(url)
        host = place.host or place.query["host"]
        port = place.port or place.query.get("port", 5432)
        me = place.username

        def name(*roles: str) -> None:
            named = json.dumps([me, *roles])
            trust_file(
                f'[[database]]\nurl = "postgresql://@/{place.database}?host={host}&port={port}"\n'
                f"roles = {named}\n"
            )

        def untrusted() -> str:
            outcome = cli("worker", study[:12], "--store", url)
            assert outcome.code == 2
            assert "[worker.untrusted_request]" in outcome.err
            return outcome.err.replace("\n", " ")

        key_path().unlink()
        assert reason(untrusted()) == snapshot
        with Store.open(url) as store:
            assert str(me) in store.writers()
            others = store.writers() - {str(me)}
        name(*others)
        tag = study[:8]
        made: list[str] = []

        def role(name: str, *grants: str) -> str:
            """A role that can log in, with these rights."""
            with Store.open(url) as store, store._database.write() as connection:
                connection.execute(text(f"CREATE ROLE {name}_{tag} LOGIN"))
                made.append(f"{name}_{tag}")
                for grant in grants:
                    connection.execute(text(grant.format(f"{name}_{tag}")))
            return f"{name}_{tag}"

        try:
            role("reader", "GRANT SELECT ON study TO {}")
            with Store.open(url) as store:
                verdict = judge_request(store, store.get_study(1))
                assert verdict is not None
                assert verdict.trusted, verdict.why
                assert str(trust_path()) in verdict.why
            group = role("grp", "GRANT UPDATE ON study TO {}")
            for new, grant in (
                ("updates", "GRANT UPDATE (request) ON study TO {}"),
                ("inserts", "GRANT INSERT ON study TO {}"),
                ("triggers", "GRANT TRIGGER ON study TO {}"),
                ("member", f"GRANT {group} TO {{}}"),
                ("noinherit", f"ALTER ROLE {{0}} NOINHERIT; GRANT {group} TO {{0}}"),
                ("creator", "ALTER ROLE {} CREATEROLE"),
                ("super", "ALTER ROLE {} SUPERUSER"),
            ):
                name(*others, *made)
                added = role(new, grant)
                assert f"'{added}'" in untrusted()
            name(*others, *made)
            with Store.open(url) as store:
                verdict = judge_request(store, store.get_study(1))
                assert verdict is not None
                assert verdict.trusted
        finally:
            with Store.open(url) as store, store._database.write() as connection:
                for one in made:
                    connection.execute(text(f"DROP OWNED BY {one}"))
                    connection.execute(text(f"DROP ROLE {one}"))
        assert not canary.exists()
