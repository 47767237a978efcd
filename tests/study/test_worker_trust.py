"""The key in a user's home: made once, private, and refused where it is not."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.study.study_request import SearchRequest
from autotune.workers.worker_request import (
    MOST_REQUESTS,
    REQUESTS_SCHEMA,
    WorkerRequest,
    requests_of,
    with_request,
)
from autotune.workers.worker_trust import TrustVerdict, key_path, make_key, read_key
from tests.refusals import refused


def of_document(search: dict[str, object]) -> dict[str, object]:
    """What a study holds whose one request has this document."""
    request = {"search": search, "cwd": "/", "key": "", "signature": ""}
    return {"schema": REQUESTS_SCHEMA, "requests": [request]}


STUDY, OTHER = "a" * 64, "b" * 64
PROGRAM = ["./a.out", "--scheduler"]


def search(*program: str, **fields: object) -> SearchRequest:
    target = {"input": fields.pop("input", "tiny"), "program": list(program or PROGRAM)}
    return SearchRequest.of("x", target=target, **{"trials": 8} | fields)


REQUEST = WorkerRequest(search(), "/home/me")


def test_a_key_is_made_once_and_private() -> None:
    assert read_key() is None
    key = make_key()
    assert stat.S_IMODE(key_path().stat().st_mode) == 0o600
    assert read_key() == make_key() == key
    assert len(key.secret) == 32
    assert key.secret.hex() not in repr(key)
    assert [p.name for p in key_path().parent.iterdir()] == ["worker.key"]


def test_of_many_that_make_one_all_have_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: make_key(), range(16)))
    assert len({key.secret for key in keys}) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666, 0o620, 0o602])
def test_a_key_that_others_may_use_is_refused(mode: int) -> None:
    make_key()
    key_path().chmod(mode)
    for use in (read_key, make_key):
        with refused(UsageError, "trust.key_file"):
            use()


def test_a_key_of_somebody_else_is_refused() -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    make_key()
    os.chown(key_path(), 65534, -1)
    with refused(UsageError, "trust.key_file"):
        read_key()


def test_a_linked_key_is_refused(tmp_path: Path) -> None:
    make_key()
    key_path().rename(tmp_path / "key")
    key_path().symlink_to(tmp_path / "key")
    with refused(UsageError, "trust.key_file"):
        read_key()


@pytest.mark.parametrize("content", ["", "x", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n\n", "é"])
def test_what_is_no_key_is_refused(content: str) -> None:
    make_key()
    key_path().write_text(content)
    with refused(UsageError, "trust.key_file"):
        read_key()


def test_a_fifo_does_not_wait() -> None:
    key_path().parent.mkdir(parents=True)
    os.mkfifo(key_path(), 0o600)
    with refused(UsageError, "trust.key_file"):
        read_key()


def test_a_signature_is_for_all_of_one_request_of_one_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key()
    signed = key.sign(REQUEST, STUDY)
    assert key.is_author(signed, STUDY)
    assert not key.is_author(signed, OTHER)
    for other, place in (
        (search(input="small"), REQUEST.cwd),
        (search(*PROGRAM, "more"), REQUEST.cwd),
        (search("./a.out --scheduler"), REQUEST.cwd),
        (search(trials=9), REQUEST.cwd),
        (search(), "/home/me/other"),
    ):
        assert not key.is_author(dataclasses.replace(signed, search=other, cwd=place), STUDY)
    for code in ("", signed.signature[:-1], signed.signature.upper(), "\udcff", "0" * 64):
        assert not key.is_author(dataclasses.replace(signed, signature=code), STUDY)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another"))
    assert make_key() != key
    assert not make_key().is_author(signed, STUDY)


@pytest.mark.parametrize(
    "fields",
    [
        {"json_out": "/etc/passwd"},
        {"store": "x"},
        {"target": {"scheduler": "slurm"}},
        {"target": {"of": "abcd"}},
        {"target": {"app": 5}},
        {"trials": "many"},
        {"seed": -1},
        {"min_gain": 2},
        {"target": {"app": "a\0b"}},
        {"target": {"program": ["x" * (1 << 20)]}},
    ],
)
def test_a_request_holds_what_a_search_writes(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        requests_of(of_document({"schema": "autotune-search-1", "target": {}, **fields}))


@pytest.mark.parametrize("place", ["", ".", "here", "../x"])
def test_a_request_is_for_an_absolute_directory(place: str) -> None:
    with refused(UsageError, "request.refused"):
        WorkerRequest(search(), place)


def test_the_words_of_the_program_stay_its_own() -> None:
    asked = REQUEST.search
    assert list(asked.target.program or ()) == PROGRAM
    assert asked.words()[-3:] == ["--", *PROGRAM]
    assert SearchRequest.from_json(json.loads(json.dumps(asked.to_json())), "x") == asked


def test_the_command_before_each_run_is_signed_and_shown() -> None:
    target = {"program": ["./a.out"], "ranks": 2, "before": ["rm", "-f", "a b"], "fresh_dir": "in"}
    asked = SearchRequest.of("x", target=target)
    assert SearchRequest.from_json(json.loads(json.dumps(asked.to_json())), "x") == asked
    words = asked.words()
    assert words[words.index("--before") + 1] == "rm -f 'a b'"
    assert words[words.index("--fresh-dir") + 1] == "in"
    request = WorkerRequest(asked, "/home/me")
    assert "before:    ['rm', '-f', 'a b']" in TrustVerdict(request, False, "").words
    signed = make_key().sign(request, STUDY)
    assert make_key().is_author(signed, STUDY)
    other = SearchRequest.of("x", target={**target, "before": ["rm", "-rf", "/"]})
    assert not make_key().is_author(dataclasses.replace(signed, search=other), STUDY)


def test_a_study_holds_one_request_of_each_key() -> None:
    data = None
    for number in range(2 * MOST_REQUESTS):
        key = f"{number % (MOST_REQUESTS + 8)}"
        one = WorkerRequest(search(seed=number), "/x", key=key)
        data = json.loads(json.dumps(with_request(data, one)))
    kept = requests_of(data)
    assert len(kept) == MOST_REQUESTS
    assert len({one.key for one in kept}) == MOST_REQUESTS
    assert kept[-1].search.seed == 2 * MOST_REQUESTS - 1


def test_a_request_that_nobody_signed_is_no_ones() -> None:
    [unsigned] = requests_of(with_request(None, REQUEST))
    assert unsigned == REQUEST
    assert not make_key().is_author(unsigned, STUDY)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"argv": ["--app", "x"], "cwd": "/"},
        {"schema": "autotune-requests-9", "requests": []},
        {"schema": REQUESTS_SCHEMA},
        {"schema": REQUESTS_SCHEMA, "requests": 5},
        {"schema": REQUESTS_SCHEMA, "requests": [5]},
        {"schema": REQUESTS_SCHEMA, "requests": [{}] * (MOST_REQUESTS + 1)},
        {"schema": REQUESTS_SCHEMA, "requests": [REQUEST.to_json() | {"key": 5}]},
        {"schema": REQUESTS_SCHEMA, "requests": [REQUEST.to_json() | {"cwd": None}]},
        {"schema": REQUESTS_SCHEMA, "requests": [REQUEST.to_json() | {"search": 5}]},
        of_document({}),
        of_document({"schema": "autotune-search-2", "target": {}}),
        of_document({"schema": "autotune-search-1"}),
        of_document({"schema": "autotune-search-1", "target": {}, "json_out": "/etc/passwd"}),
        of_document({"schema": "autotune-search-1", "target": {"command": 5}}),
        of_document({"schema": "autotune-search-1", "target": {"json": "x"}}),
        of_document({"schema": "autotune-search-1", "target": {}, "budget_s": "NaN"}),
    ],
)
def test_damaged_requests_are_refused_and_replaced(data: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        requests_of(data)
    assert requests_of(with_request(data, REQUEST)) == [REQUEST]
