"""Ids that people give their requests."""

from __future__ import annotations

import pytest

from cockpit.model.requests import RequestIds, is_request_id, names_request


@pytest.mark.req("TR-05")
@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("night-run_7.a", True),
        ("x" * 100, True),
        ("x" * 101, False),
        ("", False),
        ("a b", False),
        ("a\n", False),
        ("é", False),
        ("-a", False),
    ],
)
def test_a_request_id_is_a_plain_word(text: str, may: bool) -> None:
    assert is_request_id(text) is may


@pytest.mark.req("TR-01")
@pytest.mark.parametrize(
    ("text", "may"),
    [("night", True), ("night#2", True), ("night#", False), ("night#x", False), ("night#٣", False), ("#2", False)],
)
def test_a_further_act_of_a_command_is_named_by_its_id_and_number(text: str, may: bool) -> None:
    assert names_request(text) is may


@pytest.mark.req("TR-01")
def test_the_acts_of_a_command_get_the_same_ids_when_it_is_repeated() -> None:
    ids = RequestIds("night")
    assert (ids.required, ids.used, ids.count, ids.words()) == (True, False, 0, b"")
    assert [ids.next(), ids.next(), ids.next()] == ["night", "night#2", "night#3"]
    assert (ids.used, ids.count) == (True, 3)
    assert [ids.numbered(number) for number in (1, 2)] == ["night", "night#2"]
    again = RequestIds("night", required=False, words=lambda: b"hash")
    again.skip_to(3)
    assert (again.count, again.next()) == (2, "night#3")
    assert (again.required, again.words()) == (False, b"hash")
