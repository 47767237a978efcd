"""The file ``site.toml`` of a site (:mod:`autotune.config.site`); read only where there is one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from autotune.config.validated import read_toml


class SiteFile(BaseModel):
    """What ``site.toml`` says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str = ""
    """Path or URL of the results database of all users, without a password; empty: each user's."""


def read_site(text: str, origin: str) -> SiteFile:
    """The file's content; raises UsageError, in which ``origin`` names the file."""
    return read_toml(text, origin, SiteFile)
