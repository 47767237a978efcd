"""Passwords in URLs of databases are masked, whatever they are made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, make_url

from autotune.errors import UsageError
from autotune.store.location import locate
from autotune.workers.worker_trust import roles_for
from runner.passwords import has_password, mask_password, mask_words
from tests.case_table import case_table

LETTERS = st.characters(blacklist_characters="\n", blacklist_categories=("Cs",))
PASSWORDS = st.text(LETTERS, min_size=1, max_size=20).map(lambda text: f"<{text}>")
USERS = st.text("abc_", min_size=0, max_size=5)


@given(PASSWORDS, USERS, st.booleans())
def test_a_written_url_shows_no_password(password: str, user: str, port: bool) -> None:
    url = URL.create("postgresql", user or "u", password, "db.host", 5432 if port else None, "d")
    text = url.render_as_string(hide_password=False)
    hidden = text.partition("://")[2].partition(":")[2].rpartition("@")[0]
    for masked in (mask_password(f"at {text} now"), *mask_words(["--store", text])):
        assert hidden not in masked
    assert has_password(text)
    assert make_url(mask_words([text])[0]).host == "db.host"


@given(st.text(min_size=1, max_size=20).map(lambda text: f"<{text}>"))
def test_a_typed_word_shows_no_password(password: str) -> None:
    """As users type it: with @, blanks or newlines, which nothing has quoted."""
    [masked] = mask_words([f"--store=postgresql://me:{password}@host/d?application_name=x"])
    assert masked == "--store=postgresql://me:***@host/d?application_name=x"


@case_table(
    ("word", "masked"),
    [
        ("postgresql:///d?user=me&password=s3cret&host=h", "postgresql:///d?user=me&password=***&host=h"),
        ("postgresql+psycopg://:s3cret@h/d", "postgresql+psycopg://:***@h/d"),
        ("postgresql://me:***@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me@h:5432/d", "postgresql://me@h:5432/d"),
        ("results.db", "results.db"),
        ("http://127.0.0.1:8765/", "http://127.0.0.1:8765/"),
    ],
)  # fmt: skip
def test_the_rest_stays(word: str, masked: str) -> None:
    assert mask_words([word]) == [masked]
    assert has_password(word) == (word != masked)


@case_table("scheme", ["oracle", "sqlite", "postgresql", "nonsense+x"])
@case_table("rest", ["h:port/d", "h", "h/d?password=s3cret&x", "@@"])
def test_no_error_of_the_api_has_a_password(scheme: str, rest: str) -> None:
    url = f"{scheme}://me:s3cret/9f@7c@{rest}"
    trust = f'[[database]]\nurl = "{url}"\nroles = ["a"]\n'
    wanted = make_url("postgresql://h/d")
    for refused in (lambda: locate(url), lambda: roles_for(trust, "trust.toml", wanted)):
        try:
            refused()
        except UsageError as problem:
            said = str(problem)
        else:
            said = ""
        assert not any(part in said for part in ("s3cret", "9f@7c", "7c@"))
