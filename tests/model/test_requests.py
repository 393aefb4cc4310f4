"""Ids that people give their requests."""

from __future__ import annotations

import pytest

from cockpit.model.requests import is_request_id


@pytest.mark.req("TR-05")
@pytest.mark.parametrize(
    ("text", "may"), [("night-run_7.a", True), ("", False), ("a b", False), ("a\n", False), ("é", False)]
)
def test_a_request_id_is_a_plain_word(text: str, may: bool) -> None:
    assert is_request_id(text) is may
