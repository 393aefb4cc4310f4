"""The kinds of values in a cluster's rules: what each reads, refuses, writes, and describes in the schema."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.formats.kinds import FieldType, Flag, Reading, Text
from cockpit.formats.rulekinds import (
    AtLeastOne,
    Factor,
    Lowered,
    MapOf,
    Shares,
    TresOf,
    Word,
    lowered,
    name,
    names,
    storage_error,
    user,
)
from cockpit.formats.trestext import NumberMeaning
from cockpit.model.rules.bounds import Bounds

AMOUNTS = TresOf(NumberMeaning.AMOUNT)
SHARES = Shares(Bounds(0, 9))


def read(kind: FieldType[Any], value: object) -> tuple[Any, list[str]]:
    reading = Reading("/", "")
    return kind.read(value, "at", reading), reading.errors


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (Lowered(), "nlp", "nlp"),
        (name(), "GPU", "GPU"),
        (lowered(), "nlp", "nlp"),
        (user(), "ann@lab", "ann@lab"),
        (names(Text()), ["a", "b"], ("a", "b")),
        (AtLeastOne(Text(), 3), ["a"], ("a",)),
        (Word(("UP", "Down")), "Down", "Down"),
        (AMOUNTS, {"cpu": 4, "mem": 1.5}, {"cpu": 4.0, "mem": 1.5}),
        (AMOUNTS, {}, {}),
        (SHARES, 9, 9),
        (SHARES, 0, 0),
        (SHARES, "parent", None),
        (Factor(), 0, 0.0),
        (Factor(), 2.5, 2.5),
        (Factor(), 1_000_000_000, 1e9),
        (MapOf(Text(), Flag()), {"a": True}, {"a": True}),
    ],
)
def test_a_value_of_the_rules_is_read_and_written_again(kind: FieldType[Any], written: object, value: object) -> None:
    assert read(kind, written) == (value, [])
    assert kind.write(value) == written


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (Lowered(), "NLP", "nlp"),
        (lowered(), "NLP", "nlp"),
        (Word(("UP", "Down")), "down", "Down"),
        (AMOUNTS, "CPU=16,mem=64G", {"cpu": 16.0, "mem": 65_536.0}),
        (AMOUNTS, {"CPU": 4, "mem": "1G"}, {"cpu": 4.0, "mem": 1024.0}),
        (AMOUNTS, "", {}),
        (AMOUNTS, "cpu=0", {"cpu": 0.0}),
    ],
)
def test_rules_are_read_in_any_case_and_amounts_as_slurm_writes_them(
    kind: FieldType[Any], written: object, value: object
) -> None:
    assert read(kind, written) == (value, [])


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(
    ("kind", "value", "stand_in", "error"),
    [
        (name(), "a b", "x", 'at: "a b" is no name here; use letters'),
        (lowered(), "a/b", "x", 'at: "a/b" is no name here'),
        (user(), "a b", "x", 'at: "a b" is no user name'),
        (AtLeastOne(Text(), 3), [], (), "at: is empty; give one or more"),
        (AtLeastOne(Text(), 3), "a", ("x",), 'at: is the text "a"; write a list: ["a"]'),
        (Word(("UP", "Down")), "left", "UP", 'at: is the text "left"; write UP or Down'),
        (Word(("UP", "Down")), 3, "UP", "at: is the number 3; write UP or Down"),
        (AMOUNTS, [], {}, "at: is a list; write { cpu = 16, mem = 65536 }"),
        (AMOUNTS, "cpu", {}, 'at: "cpu" is no amount; write cpu=16,mem=64G,gres/gpu=4'),
        (AMOUNTS, "cpu=-1", {}, 'at: "cpu=-1" has a number below 0'),
        (AMOUNTS, {"cpu": -1}, {}, "at.cpu: -1 is below 0"),
        (AMOUNTS, {"cpu": "x"}, {}, 'at.cpu: "x" is no number'),
        (AMOUNTS, {"disk": 1}, {}, 'at.disk: "disk" is no resource that is counted here'),
        (AMOUNTS, {"cpu": 1, "CPU": 2}, {"cpu": 1.0}, "at.CPU: says again what another field says; keep one of them"),
        (SHARES, 10, 1, "at: is the number 10; write a whole number up to 9, or parent"),
        (SHARES, True, 1, "at: is true; write a whole number up to 9, or parent"),
        (Factor(), -1, 1.0, "at: is the number -1; write a number from 0 to 1e+09"),
        (Factor(), 1_000_000_001, 1.0, "at: is the number 1000000001; write a number from 0 to 1e+09"),
        (Factor(), True, 1.0, "at: is true; write a number from 0 to 1e+09"),
        (Factor(), "2", 1.0, 'at: is the text "2"; write a number from 0 to 1e+09'),
        (MapOf(Text(), Flag()), ["a"], {}, "at: is a list; write a table of names"),
        (MapOf(name(), Flag()), {"a b": True}, {"a b": True}, 'at.a b: "a b" is no name here'),
        (MapOf(Text(), Flag()), {"a": 1}, {"a": False}, "at.a: is the number 1; write true or false"),
    ],
)
def test_a_wrong_rule_is_replaced_and_reported(
    kind: FieldType[Any], value: object, stand_in: object, error: str
) -> None:
    found, (sentence,) = read(kind, value)
    assert found == stand_in
    assert sentence.startswith(error)


@pytest.mark.req("SC-15")
@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Lowered(), {"type": "string", "minLength": 1}),
        (user(), {"type": "string", "minLength": 1}),
        (names(Flag()), {"type": "array", "items": {"type": "boolean"}, "maxItems": 4096}),
        (AtLeastOne(Flag(), 3), {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}),
        (Word(("UP", "Down")), {"enum": ["UP", "Down"]}),
        (SHARES, {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"const": "parent"}]}),
        (Factor(), {"type": "number", "minimum": 0, "maximum": 1e9}),
        (MapOf(Text(), Flag()), {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (
            AMOUNTS,
            {
                "anyOf": [
                    {"type": "string"},
                    {"type": "object", "additionalProperties": {"type": ["number", "string"], "minimum": 0}},
                ]
            },
        ),
    ],
)
def test_the_schema_of_a_rule_permits_what_is_read(kind: FieldType[Any], schema: dict[str, Any]) -> None:
    assert kind.schema() == schema


@pytest.mark.req("SC-15")
def test_a_storage_instance_is_named_in_full() -> None:
    good = "projects/p/locations/z/instances/i"
    assert storage_error(good) is None
    assert storage_error(good.ljust(1024, "i")) is None
    for wrong in (good.ljust(1025, "i"), "projects/p", f"{good}/x", f"{good}\x1b"):
        assert str(storage_error(wrong)).endswith("is no storage; write projects/PROJECT/locations/ZONE/instances/NAME")
