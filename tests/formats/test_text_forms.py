"""TOML and JSON: what is written reads back, and what is no such text is refused with its place."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.documents import UnreadableError, is_json, json_documents, json_line_documents, json_value, listed
from cockpit.formats.kinds import Reading, Text, WholeNumber
from cockpit.formats.tables import Field, Table
from cockpit.formats.tomltext import parse_toml, toml_key, toml_table, toml_text
from cockpit.model.rules.bounds import Bounds

WRITTEN: list[tuple[object, str]] = [
    (True, "true"),
    (False, "false"),
    (3, "3"),
    (1.5, "1.5"),
    ("a b", '"a b"'),
    ('a"b\\c', '"a\\"b\\\\c"'),
    ("a\tb", '"a\\tb"'),
    ("\x1b", '"\\U0000001b"'),
    ("a\nb", "'''\na\nb'''"),
    ("a\n\tb", "'''\na\n\tb'''"),
    ("a\n'''b", "\"a\\n'''b\""),
    ("a\nb'", '"a\\nb\'"'),
    ("a\n\x1b", '"a\\n\\U0000001b"'),
    ([1, "a"], '[1, "a"]'),
    ((1, 2), "[1, 2]"),
    ({"a b": 1, "c": "d"}, '{ "a b" = 1, c = "d" }'),
]


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_a_value_is_written_as_toml_that_reads_back(value: object, text: str) -> None:
    assert toml_text(value) == text
    read = tomllib.loads(f"x = {text}")["x"]
    assert read == (list(value) if isinstance(value, tuple) else value)


@pytest.mark.req("SC-15")
def test_tables_become_headings_down_to_the_second_level_and_lines_below_it() -> None:
    table: dict[str, Any] = {
        "name": "lab",
        "empty": [],
        "pools": [{"name": "a", "more": {"x": 1}}, {"name": "b"}],
        "rules": {"limits": {"deep": {"max": 3}}, "on": True},
    }
    text = "\n".join(toml_table(table))
    assert tomllib.loads(text) == table
    lines = text.splitlines()
    assert lines[:2] == ['name = "lab"', "empty = []"]
    assert [line for line in lines if line.startswith("[")] == [
        "[[pools]]",
        "[pools.more]",
        "[[pools]]",
        "[rules]",
        "[rules.limits]",
    ]
    assert "deep = { max = 3 }" in lines


@pytest.mark.req("SC-15")
def test_a_key_is_quoted_only_if_it_must_be() -> None:
    assert [toml_key(each) for each in ("a-b_1", "a b", "", "ä")] == ["a-b_1", '"a b"', '""', '"ä"']


@pytest.mark.req("SC-15", "TR-05")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a = ", "f: is no TOML: "),
        ("a = 9223372036854775808", "f: a: is a number of more than 64 bits, which TOML does not have"),
        ("a = -9223372036854775809", "f: a: is a number of more than 64 bits"),
        ("[b]\n'c d' = [1, 9223372036854775808]", 'f: b."c d"[1]: is a number of more than 64 bits'),
        ("a = " + "9" * 5000, "f: holds a number with thousands of digits"),
        ("a = " + "[" * 100_000, "f: is no TOML: it nests too deep"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        parse_toml(text, "f")
    (found,) = caught.value.errors
    assert found.startswith(error)


@pytest.mark.req("SC-15")
def test_numbers_of_64_bits_and_flags_are_toml() -> None:
    most = {"a": [2**63 - 1, -(2**63)], "b": True}
    assert parse_toml("a = [9223372036854775807, -9223372036854775808]\nb = true", "f") == most


@pytest.mark.req("LA-70")
def test_the_jobs_of_a_json_text_have_their_index_and_those_of_lines_their_line() -> None:
    assert listed({"a": 1}) == [("", {"a": 1})]
    assert json_documents('[{"a": 1}, {"a": 2}]').items == [("[0]", {"a": 1}), ("[1]", {"a": 2})]
    lines = json_line_documents('{"a": 1}\n\n  \n{"a": 2}\n{')
    assert lines.items == [(":1", {"a": 1}), (":4", {"a": 2})]
    assert [error.split(": ")[0] for error in lines.errors] == [":5"]
    assert json_documents("{").items == []
    assert json_documents("{").errors[0].startswith(": is not JSON: ")


@pytest.mark.req("LA-70", "TR-05")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is not JSON: "),
        ("{} {}", "is not JSON: Extra data, line 1, column 4; one job a line needs a file named .jsonl"),
        ("[" * 100_000, "nests deeper than a job does"),
        ("9" * 5000, "holds a number with thousands of digits"),
        ('{"a": 1, "b": 2, "a": 3}', '"a" is there twice in one table; keep one'),
        ("NaN", "NaN is no JSON; write a number"),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason(text: str, error: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        json_value(text)
    assert str(caught.value).startswith(error)
    assert not is_json(text)
    assert is_json('{"a": [1]}')


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    count: int = 4
    note: str = ""


NAME = Field(name="name", attribute="name", kind=Text(), about="The name.", required=True)
COUNT = Field(name="count", attribute="count", kind=WholeNumber(Bounds(1, 9)), about="How many.")
NOTE = Field(name="note", attribute="note", kind=Text(), about="A note.")


def errors_of(table: Table[Pair], value: object, at: str = "at") -> list[str]:
    reading = Reading("/work", "")
    table.read(value, at, reading)
    return reading.errors


@pytest.mark.req("JT-07")
@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ({"name": "a", "count": 3}, []),
        ({"count": 3}, ["at.name: is missing; the name"]),
        ({"name": "a", "cuont": 3}, ["at.cuont: is no field here; did you mean count?"]),
        ({"name": "a", "x": 3}, ["at.x: is no field here; known are name, count, note"]),
        (["a"], ["at: is a list; write fields: name, count, note …"]),
        ("a", ['at: is the text "a"; write fields: name, count, note …']),
    ],
)
def test_a_mapping_is_read_by_its_fields_and_each_error_names_one(value: object, errors: list[str]) -> None:
    found = errors_of(Table(Pair, [NAME, COUNT, NOTE]), value)
    assert [each[: len(error)] for each, error in zip(found, errors, strict=True)] == errors


@pytest.mark.req("JT-07")
def test_a_short_form_an_alias_and_a_choice_of_fields_are_read() -> None:
    short = Table(Pair, [NAME, COUNT], short="name")
    reading = Reading("/work", "")
    assert short.read("a", "", reading) == Pair(name="a")
    assert short.schema()["anyOf"][0] == {"type": "string"}
    other = Field(name="label", attribute="name", kind=Text(), about="The name.", alias=True)
    aliased = Table(Pair, [NAME, other])
    assert aliased.read({"label": "a"}, "", reading) == Pair(name="a")
    assert reading.errors == []
    assert aliased.write(Pair(name="a")) == {"name": "a"}
    assert errors_of(aliased, {"label": "a", "name": "b"}) == [
        "at.name: says again what another field says; keep one of them"
    ]
    either = Table(Pair, [COUNT, NOTE], either=("count", "note"))
    assert errors_of(either, {}) == ["at: says neither count nor note; write one of them"]
    assert errors_of(either, {"note": "x"}) == []
    assert either.schema()["anyOf"] == [{"required": ["count"]}, {"required": ["note"]}]


@pytest.mark.req("JT-07")
def test_a_field_is_written_and_has_a_default_in_the_schema_as_it_is_declared() -> None:
    always = Field(name="count", attribute="count", kind=WholeNumber(Bounds(1, 9)), about="How many.", always=True)
    plain, fixed = Table(Pair, [NAME, COUNT, NOTE]), Table(Pair, [NAME, always])
    assert plain.write(Pair(name="a")) == {"name": "a"}
    assert plain.write(Pair(name="a", count=5, note="x")) == {"name": "a", "count": 5, "note": "x"}
    assert fixed.write(Pair(name="a")) == {"name": "a", "count": 4}
    schema = plain.schema()
    assert schema["properties"]["count"] == {
        "description": "How many.",
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 4,
    }
    assert "default" not in schema["properties"]["note"]
    assert "default" not in fixed.schema()["properties"]["count"]
    assert (schema["required"], schema["additionalProperties"]) == (["name"], False)


@pytest.mark.req("JT-07")
def test_a_required_field_may_be_spared_or_computed_by_the_others() -> None:
    spared = msgspec.structs.replace(NAME, spared=lambda given: given.get("count") == 9)
    table = Table(Pair, [spared, COUNT])
    assert errors_of(table, {"count": 9}) == []
    assert errors_of(table, {"count": 8}) == ["at.name: is missing; the name"]
    assert table.write(Pair(count=9)) == {"count": 9}
    assert "required" not in table.schema()
    derived = msgspec.structs.replace(NAME, required=False, derive=lambda given: f"n{given['count']}")
    reading = Reading("/work", "")
    assert Table(Pair, [derived, COUNT]).read({"count": 2}, "", reading) == Pair(name="n2", count=2)
    assert Table(Pair, [derived, COUNT]).write(Pair(name="n2", count=2)) == {"name": "n2", "count": 2}
