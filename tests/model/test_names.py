from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.names import NAME_PATTERN, dns_name, free_name, host_name, name_error, next_name
from tests.hostile import HOSTILE, SEEN, UNSEEN

LABEL = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")


@pytest.mark.req("JT-01")
@pytest.mark.parametrize("name", ["held-one", "[bold]", "a b", "1", "训练", "lr=0.1,b=2", "🚀", "x" * 63, "训" * 63])
def test_printable_names_are_legal(name: str) -> None:
    assert name_error(name) is None


@pytest.mark.req("JT-01")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "is empty"),
        ("x" * 64, "64 characters"),
        ("a/b", '"/"'),
        ("..", 'begins with "."'),
        (".hidden", 'begins with "."'),
        ("-rf", 'begins with "-"'),
        (" a", "space"),
        ("a ", "space"),
        ("a\nb", r"contains \n"),
        ("\x1b[1m", r"contains \x1b"),
        ("a\u202eb", r"contains \u202e"),
        ("\u0301a", "accent"),
    ],
)
def test_other_names_are_refused_with_the_error(name: str, part: str) -> None:
    error = name_error(name)
    assert error is not None
    assert part in error
    assert error.isprintable()


@pytest.mark.req("JT-01", "TR-05")
@pytest.mark.parametrize("name", UNSEEN.values(), ids=UNSEEN)
def test_names_with_unseen_characters_are_refused(name: str) -> None:
    error = name_error(name)
    assert error is not None
    assert error.isprintable()


@pytest.mark.req("JT-01")
@pytest.mark.parametrize("name", SEEN.values(), ids=SEEN)
def test_names_that_look_dangerous_are_only_names(name: str) -> None:
    refused = name.startswith((".", "-")) or "/" in name
    assert (name_error(name) is not None) == refused


@given(st.text(max_size=80))
def test_the_schema_pattern_is_never_stricter_than_the_rule(name: str) -> None:
    if name_error(name) is None:
        assert re.search(NAME_PATTERN, name)


@pytest.mark.req("JT-01")
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_host_names_are_labels_of_dns(name: str) -> None:
    assert LABEL.fullmatch(dns_name(name))
    assert len(dns_name(name)) <= 63


@given(st.text(), st.integers(0, 10_000))
def test_every_text_makes_a_host_name(name: str, rank: int) -> None:
    assert dns_name(name) == dns_name(name)
    for label in (dns_name(name), host_name(name, rank)):
        assert LABEL.fullmatch(label)
        assert len(label) <= 63


@pytest.mark.req("JT-01")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("held-one", "held-one"), ("BERT_eval.2", "bert-eval-2"), ("[bold]", "bold"), ("0x7f", "job-0x7f"), ("🚀", "job")],
)
def test_plain_names_stay_recognisable(name: str, expected: str) -> None:
    assert dns_name(name) == expected


def test_names_that_lose_letters_stay_distinct() -> None:
    assert dns_name("训练-1") != dns_name("测试-1")
    assert dns_name("训练") != dns_name("测试")
    assert dns_name("é") != dns_name("")


@pytest.mark.req("JT-01")
def test_the_host_name_of_a_name_that_lost_letters_ends_in_a_short_digest() -> None:
    assert re.fullmatch(r"bert-[0-9a-f]{8}", dns_name("bert-训"))
    assert re.fullmatch(r"(?:job-)?[0-9a-f]{8}", dns_name("训"))
    assert len(dns_name("x" * 62 + "训")) <= 63


@pytest.mark.req("JT-01")
def test_a_host_name_begins_with_a_letter() -> None:
    assert [dns_name(name) for name in ("a1", "1a", "7")] == ["a1", "job-1a", "job-7"]


def test_host_names_carry_the_rank() -> None:
    assert host_name("held-one", 3) == "held-one-3"
    assert host_name("x" * 63, 12) == "x" * 60 + "-12"


def test_an_unused_name_stays_and_a_used_one_gets_the_next_number() -> None:
    assert free_name("bert", {"gpt"}) == "bert"
    assert free_name("bert", {"bert", "bert-2"}) == "bert-3"


@pytest.mark.req("UI-30")
@pytest.mark.parametrize(
    ("name", "taken", "following"),
    [
        ("bert", {"bert"}, "bert-2"),
        ("bert", {"bert", "bert-2", "bert-3"}, "bert-4"),
        ("bert-2", {"bert-2"}, "bert-3"),
        ("bert-large", {"bert-large"}, "bert-large-2"),
        ("-7", {"-7"}, "-7-2"),
        ("x" * 63, {"x" * 63}, f"{'x' * 61}-2"),
    ],
)
def test_the_next_name_of_a_series_is_the_first_free_one_from_two_on(
    name: str, taken: set[str], following: str
) -> None:
    assert next_name(name, taken) == following
    assert free_name(name, taken) == following
    assert free_name("unused", taken) == "unused"
