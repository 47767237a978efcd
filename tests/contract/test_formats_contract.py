"""The contract on every registered format."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.contract.formats")

from autotune.publish.formats import ALL, Format  # noqa: E402
from tests.contract.formats import FormatContract  # noqa: E402


class TestFormats(FormatContract):
    @pytest.fixture(params=ALL, ids=lambda fmt: fmt.name)
    def fmt(self, request: pytest.FixtureRequest) -> Format:
        found = request.param
        assert isinstance(found, Format)
        return found
