"""Every kind of value of a file: what it reads, the error for what it does not read, what it writes, and its schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from cockpit.formats.documents import AmbiguousText
from cockpit.formats.kinds import (
    Choice,
    Environment,
    FieldType,
    Flag,
    ImageText,
    ListOf,
    Path,
    Reading,
    Single,
    Text,
    WholeNumber,
    described,
)
from cockpit.formats.labels import Labels, OwnLabels, TaintText, TolerationText
from cockpit.formats.measures import Cards, Duration, Memory, Price, duration, label, memory, whole
from cockpit.model.labels import Taint, Toleration
from cockpit.model.rules.bounds import Bounds

SMALL = Bounds(2, 5)


class Word(StrEnum):
    ONE = "one"
    TWO = "two"


def read(kind: FieldType[Any], value: object) -> Any:
    reading = Reading("/work", "/home/ann")
    found = kind.read(value, "at", reading)
    assert reading.errors == []
    return found


def error_of(kind: FieldType[Any], value: object) -> str:
    """Return the only error of a value, for which the kind's stand-in is read."""
    reading = Reading("/work", "/home/ann")
    assert kind.read(value, "at", reading) == kind.stand_in
    (error,) = reading.errors
    return error


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (Text(), "a b", "a b"),
        (WholeNumber(SMALL), 7, 7),
        (Flag(), True, True),
        (Choice(Word), "two", Word.TWO),
        (Path(), "/a/b", "/a/b"),
        (ImageText(), "tar:/r.tar", "tar:/r.tar"),
        (Environment(), {"A": "b"}, {"A": "b"}),
        (ListOf(Text(), 3), ["a", "b"], ("a", "b")),
        (Single(Text()), "a", ("a",)),
        (Memory(), "2G", 2048),
        (Price(), 0.35, 350),
        (Price(), 2, 2000),
        (Duration(SMALL), "1h30m", 5400),
        (Cards(), 2, 2000),
        (Cards(), 0.5, 500),
        (Labels(), {"disk": "ssd"}, {"disk": "ssd"}),
        (TaintText(), "gpu=yes", Taint("gpu", "yes")),
        (TaintText(), "spot", Taint("spot")),
        (TolerationText(), "*", Toleration()),
        (TolerationText(), "spot", Toleration("spot")),
        (TolerationText(), "gpu=", Toleration("gpu", "")),
        (whole(SMALL), 5, 5),
        (duration(SMALL), "5s", 5),
        (memory(), "512M", 512),
        (label(3), "abc", "abc"),
    ],
)
def test_a_value_is_read_and_written_again_as_it_was(kind: FieldType[Any], written: object, value: object) -> None:
    assert read(kind, written) == value
    assert kind.write(value) == written


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (Choice(Word, {"1": Word.ONE}), "1", Word.ONE),
        (Path(), "a/../b", "/work/b"),
        (Path(), "~/x", "/home/ann/x"),
        (Path(), "~", "/home/ann"),
        (Path(), "//a", "/a"),
        (ImageText(), "dir:root", "dir:/work/root"),
        (ImageText(), "tar:", "tar:"),
        (ImageText(), "", ""),
        (ImageText(), "torch:2", "torch:2"),
        (Environment(), {"A": 3}, {"A": "3"}),
        (Memory(), 2048, 2048),
        (Price(), 0, 0),
        (Price(), 1_000_000, 10**9),
        (Duration(SMALL), 90, 90),
        (Cards(), 1024, 1_024_000),
        (Cards(), 0.3, 300),
        (Labels(), " disk = ssd , zone=a", {"disk": "ssd", "zone": "a"}),
        (Labels(), {"a": 3}, {"a": "3"}),
        (Labels(), "a=", {"a": ""}),
        (OwnLabels(), "disk=ssd", {"disk": "ssd"}),
        (TaintText(), "gpu=yes:NoSchedule", Taint("gpu", "yes")),
        (TolerationText(), "spot:NoSchedule", Toleration("spot")),
    ],
)
def test_other_forms_of_a_value_are_read_too(kind: FieldType[Any], written: object, value: object) -> None:
    assert read(kind, written) == value


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (Text(), AmbiguousText("1e3"), 'at: 1e3 is a number or a date to some readers; quote it: "1e3"'),
        (Text(), True, "at: is true (so are yes, no, on and off); to mean the word, quote it"),
        (Text(), 3, 'at: is the number 3, not text; quote it: "3"'),
        (Text(), None, "at: is empty; write text"),
        (WholeNumber(SMALL), "3", 'at: is the text "3"; write a whole number from 2 on, without quotes'),
        (WholeNumber(SMALL), True, "at: is true; write a whole number from 2 on, without quotes"),
        (WholeNumber(SMALL), 3.0, "at: is the number 3.0; write a whole number from 2 on, without quotes"),
        (Flag(), 1, "at: is the number 1; write true or false, without quotes"),
        (Choice(Word), "three", 'at: is the text "three"; write one or two'),
        (Choice(Word), 1, "at: is the number 1; write one or two"),
        (Path(), "", "at: is empty; write the path of a folder"),
        (Path(), ["a"], "at: is a list; write the path of a folder"),
        (Path(), "~bob/x", 'at: "~bob/x" begins with a home that is not known here; write the whole path, or ./~'),
        (Environment(), "A=b", 'at: is the text "A=b"; write NAME: value pairs'),
        (ListOf(Text(), 3), "a", 'at: is the text "a"; write a list: ["a"]'),
        (ListOf(Text(), 3, 2), 3, "at: is the number 3; write a list: [3]"),
        (ListOf(Text(), 3), None, "at: is empty; write a list: […]"),
        (Memory(), [], "at: is a list; write 512M or 2G"),
        (Memory(), 1.5, "at: 1.5 is no size; write 512M, 2G, 1.5G or a number of MiB"),
        (Price(), -0.1, "at: is the number -0.1; write a number such as 0.35"),
        (Price(), 1_000_001, "at: is the number 1000001; write a number such as 0.35"),
        (Price(), True, "at: is true; write a number such as 0.35"),
        (Price(), "1", 'at: is the text "1"; write a number such as 0.35'),
        (Duration(SMALL), {}, "at: is a table; write 10m"),
        (Duration(SMALL), 1.5, "at: 1.5 is no time; write 90s, 10m, 1h30m, 2-12:00:00 or a number of seconds"),
        (Cards(), True, "at: is true; write a whole number or a share such as 0.5, without quotes"),
        (Cards(), "1", 'at: is the text "1"; write a whole number or a share such as 0.5, without quotes'),
        (Cards(), 1025, "at: 1025 is not between 0 and 1024"),
        (Cards(), -1, "at: -1 is not between 0 and 1024"),
        (Cards(), 0.12345, "at: 0.12345 is finer than a thousandth of a card; write 0.123"),
        (Cards(), 0.0001, "at: 0.0001 is finer than a thousandth of a card; write 0.001"),
        (Labels(), ["a"], "at: is a list; write KEY: value pairs, or KEY=value"),
        (Labels(), "a=b,c", 'at: is the text "a=b,c"; write KEY: value pairs, or KEY=value'),
        (TaintText(), 3, "at: is the number 3; write a taint as kubectl does: gpu=yes"),
        (TaintText(), "gpu=yes:NoExecute", 'at: "gpu=yes:NoExecute" has another effect than NoSchedule'),
        (TaintText(), "gpu:", 'at: "gpu:" has another effect than NoSchedule'),
        (TaintText(), "=yes", 'at: "=yes" is no key of a label'),
        (TaintText(), "gpu=/", 'at: "gpu=/" is no value of a label'),
        (TolerationText(), 3, "at: is the number 3; write a taint as kubectl does: gpu=yes"),
        (whole(SMALL), 6, "at: 6 is not between 2 and 5"),
        (duration(SMALL), "6s", "at: 6 is not between 2 and 5"),
        (memory(), 0, "at: 0 MiB is not between 1 MiB and 1073741824 MiB"),
        (label(3), "abcd", "at: has more than 3 characters"),
        (label(3), "a\n", 'at: "a\\n" contains characters that cannot be seen; remove them'),
    ],
)
def test_a_wrong_value_is_replaced_and_its_error_says_what_to_write(
    kind: FieldType[Any], value: object, error: str
) -> None:
    assert error_of(kind, value).startswith(error)


@pytest.mark.req("JT-09")
def test_errors_within_a_list_or_a_table_name_the_place() -> None:
    reading = Reading("/work", "/home/ann")
    assert ListOf(WholeNumber(SMALL), 9).read([3, "a"], "at", reading) == (3, 2)
    Environment().read({"A": None}, "env", reading)
    Labels().read({"a": None}, "labels", reading)
    OwnLabels().read({"/": "a", "b": "/", "c": "d"}, "own", reading)
    places = [error.partition(":")[0] for error in reading.errors]
    assert places == ["at[1]", "env.A", "labels.a", "own./", "own.b"]


@pytest.mark.req("JT-09")
def test_an_error_of_the_whole_file_names_no_place_and_a_home_may_be_unknown() -> None:
    reading = Reading("/work", "")
    reading.wrong("", "is no job")
    assert Path().read("~/x", "at", reading) == "/stand-in"
    assert reading.errors[0] == "is no job"
    assert reading.errors[1].startswith('at: "~/x" begins with a home that is not known here')


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "empty"),
        (True, "true"),
        (False, "false"),
        ("a\n", 'the text "a\\n"'),
        (3, "the number 3"),
        (1.5, "the number 1.5"),
        ([], "a list"),
        ({}, "a table"),
    ],
)
def test_a_value_is_described_for_an_error(value: object, text: str) -> None:
    assert described(value) == text


@pytest.mark.req("JT-09")
@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Text(minLength=1), {"type": "string", "minLength": 1}),
        (WholeNumber(SMALL), {"type": "integer", "minimum": 2, "maximum": 5}),
        (Flag(), {"type": "boolean"}),
        (Choice(Word, {"1": Word.ONE}), {"enum": ["one", "two", "1"]}),
        (Path(), {"type": "string", "minLength": 1}),
        (ImageText(), {"type": "string", "minLength": 1}),
        (ListOf(Flag(), 3), {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}),
        (ListOf(Flag(), 3, 1), {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}),
        (Single(Flag()), {"type": "boolean"}),
        (Price(), {"type": "number", "minimum": 0, "maximum": 1_000_000, "examples": [0.35]}),
        (label(3), {"type": "string", "minLength": 1, "maxLength": 3}),
        (whole(SMALL), {"type": "integer", "minimum": 2, "maximum": 5}),
    ],
)
def test_the_schema_of_a_kind_permits_what_it_reads(kind: FieldType[Any], schema: dict[str, Any]) -> None:
    assert kind.schema() == schema


@pytest.mark.req("JT-09")
def test_amounts_have_schemas_for_numbers_and_for_texts_with_units() -> None:
    of_memory, of_time, of_cards = Memory().schema(), Duration(SMALL).schema(), Cards().schema()
    assert [each["type"] for each in of_memory["anyOf"]] == ["integer", "string"]
    assert [each["type"] for each in of_time["anyOf"]] == ["integer", "string", "string"]
    share = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    assert of_cards["anyOf"] == [{"type": "integer", "minimum": 0, "maximum": 1024}, share]
    assert (of_memory["examples"], of_cards["examples"]) == (["512M", "1.5G", 2048], [1, 0.5])
    assert of_time["examples"] == ["10m", "1h30m", "2-12:00:00", 90]
    environment = Environment().schema()
    assert (environment["type"], environment["maxProperties"]) == ("object", 1000)
    assert environment["additionalProperties"] == {"type": ["string", "integer"]}
    table, text = Labels().schema()["anyOf"]
    assert (table["type"], table["maxProperties"], text["type"]) == ("object", 64, "string")
    assert (table["additionalProperties"]["type"], table["additionalProperties"]["minimum"]) == (
        ["string", "integer"],
        0,
    )
    assert TaintText().schema()["type"] == TolerationText().schema()["type"] == "string"


@pytest.mark.req("JT-09")
def test_a_wrong_list_that_needs_entries_is_replaced_by_as_many() -> None:
    assert ListOf(Text(), 3, 2).stand_in == ("x", "x")
    assert (Duration(SMALL).stand_in, Memory().stand_in, Choice(Word).stand_in) == (2, 1, Word.ONE)
