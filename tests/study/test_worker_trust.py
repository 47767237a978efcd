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
from autotune.study.request import (
    MOST_REQUESTS,
    SearchRequest,
    WorkerRequest,
    added,
    requests_of,
    search_of_words,
)
from autotune.study.worker_trust import TrustVerdict, key_path, make_key, read_key


def of_document(search: dict[str, object]) -> dict[str, object]:
    """What a study holds whose one request has this document."""
    return {"schema": "autotune-requests-3", "requests": [{"search": search, "cwd": "/"}]}


STUDY, OTHER = "a" * 64, "b" * 64
WORDS = ("--input", "tiny", "--trials", "8", "--", "./a.out", "--scheduler")
OLD = WorkerRequest.of_words(WORDS, "/home/me")
REQUEST = WorkerRequest(OLD.search, "/home/me")


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
        with pytest.raises(UsageError, match=f"other users may access it .mode {mode:04o}"):
            use()


def test_a_key_of_somebody_else_is_refused() -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    make_key()
    os.chown(key_path(), 65534, -1)
    with pytest.raises(UsageError, match="it belongs to user 65534, not to 0"):
        read_key()


def test_a_linked_key_is_refused(tmp_path: Path) -> None:
    make_key()
    key_path().rename(tmp_path / "key")
    key_path().symlink_to(tmp_path / "key")
    with pytest.raises(UsageError, match="it is a symbolic link"):
        read_key()


@pytest.mark.parametrize("content", ["", "x", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n\n", "é"])
def test_what_is_no_key_is_refused(content: str) -> None:
    make_key()
    key_path().write_text(content)
    with pytest.raises(UsageError, match="does not hold 64 hexadecimal digits"):
        read_key()


def test_a_fifo_does_not_wait() -> None:
    key_path().parent.mkdir(parents=True)
    os.mkfifo(key_path(), 0o600)
    with pytest.raises(UsageError, match="not a regular file"):
        read_key()


def test_a_signature_is_for_all_of_one_request_of_one_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key()
    for request in (REQUEST, OLD):
        signed = key.sign(request, STUDY)
        assert key.signed(signed, STUDY)
        assert not key.signed(signed, OTHER)
        for words, place in (
            (("--input", "small", *WORDS[2:]), request.cwd),
            ((*WORDS, "more"), request.cwd),
            ((*WORDS[:-2], "./a.out --scheduler"), request.cwd),
            (WORDS, "/home/me/other"),
        ):
            other = WorkerRequest.of_words(words, place, signed.key, signed.signature)
            other = dataclasses.replace(other, argv=words if request.argv else None)
            assert not key.signed(other, STUDY)
        for code in ("", signed.signature[:-1], signed.signature.upper(), "\udcff", "0" * 64):
            assert not key.signed(dataclasses.replace(signed, signature=code), STUDY)
    # A document is no signature of the words that say the same, nor they of it.
    crossed = dataclasses.replace(OLD, key=key.id, signature=key.sign(REQUEST, STUDY).signature)
    assert not key.signed(crossed, STUDY)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another"))
    assert make_key() != key
    assert not make_key().signed(signed, STUDY)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--json", "/etc/passwd"), "has '--json'"),
        (("--store", "x"), "has '--store'"),
        (("--scheduler", "slurm"), "has '--scheduler'"),
        (("--of", "abcd"), "has '--of'"),
        (("--app=jacobi3d",), "has '--app=jacobi3d'"),
        (("jacobi3d",), "has 'jacobi3d'"),
        (("--app",), "its value is missing"),
        (("--app", "a\0b"), "NUL"),
        (("--trials", "many"), "trials"),
        (("--seed", "-1"), "seed"),
        (("--min-gain", "two"), "expected a number"),
        (("--app", "x" * (1 << 20)), "characters"),
    ],
)
def test_a_request_holds_what_a_search_writes(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        WorkerRequest.of_words(words, "/home/me")


@pytest.mark.parametrize("place", ["", ".", "here", "../x"])
def test_a_request_is_for_an_absolute_directory(place: str) -> None:
    with pytest.raises(UsageError, match="expected an absolute path"):
        WorkerRequest.of_words((), place)


def test_the_words_of_the_program_stay_its_own() -> None:
    search = REQUEST.search
    assert tuple(search.target.program or ()) == ("./a.out", "--scheduler")
    assert search.words()[-3:] == ["--", "./a.out", "--scheduler"]
    assert search_of_words(tuple(search.words()[1:])) == search
    assert SearchRequest.from_json(json.loads(json.dumps(search.to_json())), "x") == search


def test_the_command_before_each_run_is_signed_and_shown() -> None:
    target = {"program": ["./a.out"], "ranks": 2, "before": ["rm", "-f", "a b"], "fresh_dir": "in"}
    search = SearchRequest.of("x", target=target)
    assert SearchRequest.from_json(json.loads(json.dumps(search.to_json())), "x") == search
    words = search.words()
    assert words[words.index("--before") + 1] == "rm -f 'a b'"
    assert words[words.index("--fresh-dir") + 1] == "in"
    request = WorkerRequest(search, "/home/me")
    assert "before:    ['rm', '-f', 'a b']" in TrustVerdict(request, False, "").words
    signed = make_key().sign(request, STUDY)
    assert make_key().signed(signed, STUDY)
    other = SearchRequest.of("x", target={**target, "before": ["rm", "-rf", "/"]})
    assert not make_key().signed(dataclasses.replace(signed, search=other), STUDY)
    # Words of a version without documents never hold such a command.
    with pytest.raises(UsageError):
        WorkerRequest.of_words(("--before", "rm x", "--", "./a.out"), "/home/me")


def test_a_study_holds_one_request_of_each_key() -> None:
    data = None
    for number in range(2 * MOST_REQUESTS):
        key = f"{number % (MOST_REQUESTS + 8)}"
        one = WorkerRequest.of_words(("--seed", str(number)), "/x", key=key)
        data = json.loads(json.dumps(added(data, one)))
    kept = requests_of(data)
    assert len(kept) == MOST_REQUESTS
    assert len({one.key for one in kept}) == MOST_REQUESTS
    assert kept[-1].argv == ("--seed", str(2 * MOST_REQUESTS - 1))


def test_a_request_of_before_there_were_keys_is_unsigned() -> None:
    [old] = requests_of({"argv": ["--app", "x"], "cwd": "/x"})
    assert old == WorkerRequest.of_words(("--app", "x"), "/x")
    assert not make_key().signed(old, STUDY)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"argv": 5, "cwd": "/"},
        {"argv": [5], "cwd": "/"},
        {"argv": [], "cwd": None},
        {"schema": "autotune-requests-2", "requests": 5},
        {"schema": "autotune-requests-2", "requests": [5]},
        {"schema": "autotune-requests-2", "requests": [{}] * (MOST_REQUESTS + 1)},
        {"schema": "autotune-requests-2", "requests": [{"argv": [], "cwd": "/", "key": 5}]},
        {"requests": [{"search": {}, "cwd": "/"}], "schema": "autotune-requests-3"},
        {"requests": [{"search": 5, "cwd": "/"}], "schema": "autotune-requests-3"},
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
    assert requests_of(added(data, REQUEST)) == [REQUEST]
