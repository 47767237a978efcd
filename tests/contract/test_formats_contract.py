"""The contract on every registered format."""

from __future__ import annotations

import pytest

from autotune.publish.formats import ALL, Format
from autotune.testing import FormatContract


class TestFormats(FormatContract):
    @pytest.fixture(params=ALL, ids=lambda fmt: fmt.name)
    def fmt(self, request: pytest.FixtureRequest) -> Format:
        found = request.param
        assert isinstance(found, Format)
        return found
