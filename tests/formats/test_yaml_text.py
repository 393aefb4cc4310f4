from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.formats.documents import AmbiguousText
from cockpit.formats.yamltext import MOST_VALUES, plain_is_text, yaml_documents


def value_of(text: str) -> Any:
    documents = yaml_documents(text)
    assert documents.errors == []
    (found,) = documents.items
    return found.value


def error_of(text: str) -> str:
    documents = yaml_documents(text)
    (error,) = documents.errors
    return error


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("true", True),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1.5e+3", 1500.0),
        ("job-1", "job-1"),
        ("1h30m", "1h30m"),
        ("512M", "512M"),
        ("y", "y"),
        ("1.2.3", "1.2.3"),
        ("-x", "-x"),
    ],
)
def test_unquoted_words_have_the_meaning_of_most_parsers(word: str, value: object) -> None:
    assert value_of(f"a: {word}") == {"a": value}


@pytest.mark.parametrize(
    "word", ["2024-01-01", "1e3", "1.5e3", "0x1f", "0o17", "017", "1_000", "4:00:00", ".inf", "-.INF", "1" * 30]
)
def test_words_that_parsers_read_differently_stay_text(word: str) -> None:
    value = value_of(f"a: {word}")["a"]
    assert isinstance(value, AmbiguousText)
    assert value == word
    assert not plain_is_text(word)


def test_quoted_words_are_text() -> None:
    assert value_of("a: 'no'\nb: \"1\"\nc: |\n  true\n") == {"a": "no", "b": "1", "c": "true\n"}


def test_field_names_are_always_text() -> None:
    assert value_of("{on: 1, 2: 3, null: 4}") == {"on": 1, "2": 3, "null": 4}


def test_aliases_and_merges_save_repeating() -> None:
    text = "- &base {name: a, env: &env {X: 1}}\n- {<<: *base, name: b}\n- {name: c, env: {<<: [*env, {Y: 2}]}}"
    values = [document.value for document in yaml_documents(text).items]
    assert values == [
        {"name": "a", "env": {"X": 1}},
        {"name": "b", "env": {"X": 1}},
        {"name": "c", "env": {"X": 1, "Y": 2}},
    ]


def test_each_job_has_the_line_it_begins_on() -> None:
    found = yaml_documents("- {a: 1}\n- {a: 2}\n---\na: 3\n---\n").items
    assert [document.where for document in found] == [":1", ":2", ":4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", ':3: "a" is there twice in one table; keep one'),
        ("a: !!python/object:os.system x", ':1: has the tag "tag:yaml.org,2002:python/object:os.system"'),
        ("a: !x [1]", ':1: has the tag "!x"'),
        ("a: *b", ":1: *b repeats nothing that came before it"),
        ("&a [*a]", ":1: *a repeats nothing"),
        ("a: [", ":2: is not YAML"),
        ("a: b: c", ":1: is not YAML"),
        ("\tb: 1", ":1: is not YAML"),
        ("a: \x1b", ": is not YAML"),
        ("? [1]\n: 2", ":1: a field's name must be a word"),
        ("<<: 1", ':1: "<<" takes a table'),
        ("a: " + "[" * 200 + "]" * 200, ":1: nests deeper"),
        ("[" * 50_000, ""),
    ],
)
def test_an_error_is_reported_with_its_line(text: str, expected: str) -> None:
    assert error_of(text).startswith(expected)
    assert error_of(text).isprintable()
    assert "unicode string" not in error_of(text), "that is the reader's own"


@pytest.mark.req("TR-05")
def test_growing_aliases_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert f"more than {MOST_VALUES} values" in error_of("\n".join(lines))


def test_an_alias_counts_what_it_repeats_and_not_what_comes_before_it() -> None:
    before, repeated = ", ".join(["1"] * 20_000), ", ".join(["*b"] * 150)
    assert len(value_of(f"a: [{before}]\nb: &b [1, 2]\nc: [{repeated}]")["c"]) == 150


PLAIN = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=12)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=6).filter(lambda name: name != "<<"), VALUES, min_size=1, max_size=5))
def test_yaml_of_other_writers_is_read(table: dict[str, Any]) -> None:
    assert value_of(yaml.safe_dump(table)) == table
