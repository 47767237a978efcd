"""Contracts that others' strategies, stores, libraries and formats keep as well as our own."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.store", "tests.contract.leases", "tests.contract.house"
)
