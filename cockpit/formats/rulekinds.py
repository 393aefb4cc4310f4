"""Kinds of values that a cluster's rules are made of: names, amounts of resources, shares, words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cockpit.formats.kinds import FieldType, ListOf, Reading, Schema, Text, described
from cockpit.formats.measures import Checked
from cockpit.formats.trestext import NumberMeaning, parse_tres, plain_number, tres_name, tres_number
from cockpit.model.cluster import Tres
from cockpit.model.rules.bounds import Bounds
from cockpit.model.rules.text import NAME_PATTERN, rule_name_error, tres_name_error, user_name_error
from cockpit.model.text import visible

MOST_NAMES = 4096
MOST_ROWS = 100_000
LARGEST_FACTOR = 1e9


class Lowered:
    """Text in lower case, as Slurm keeps the names of accounts and QOS."""

    stand_in = "x"

    def read(self, value: object, at: str, reading: Reading) -> str:
        return Text().read(value, at, reading).lower()

    def write(self, value: str) -> str:
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


def name() -> Checked[str]:
    """Return the kind of a name of a partition, pool or node, with its case."""
    return Checked(Text(pattern=NAME_PATTERN), rule_name_error)


def lowered() -> Checked[str]:
    """Return the kind of a name of an account or QOS, in lower case."""
    return Checked(Lowered(), rule_name_error)


def user() -> Checked[str]:
    """Return the kind of a name of a user, as the machine knows it."""
    return Checked(Text(minLength=1), user_name_error)


def names(kind: FieldType[Any]) -> ListOf:
    """Return the kind of any number of names."""
    return ListOf(kind, MOST_NAMES)


class AtLeastOne(ListOf):
    """A list with something in it."""

    def __init__(self, item: FieldType[Any], most: int) -> None:
        super().__init__(item, most, least=1)

    def read(self, value: object, at: str, reading: Reading) -> tuple[Any, ...]:
        # The list's own bound is checked with the other rules of a job; a cluster's rules have no such second check.
        if value == []:
            reading.wrong(at, "is empty; give one or more")
        return super().read(value, at, reading)


class Word:
    """One of several words in any case, as in Slurm."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = {word.lower(): word for word in words}
        self.stand_in = words[0]

    def read(self, value: object, at: str, reading: Reading) -> str:
        if isinstance(value, str) and value.lower() in self._words:
            return self._words[value.lower()]
        reading.wrong(at, f"is {described(value)}; write {' or '.join(self._words.values())}")
        return self.stand_in

    def write(self, value: str) -> str:
        return value

    def schema(self) -> Schema:
        return {"enum": list(self._words.values())}


class TresOf:
    """Amounts of resources: a table, or Slurm's `cpu=100,mem=150`."""

    def __init__(self, meaning: NumberMeaning) -> None:
        self.stand_in: Tres = {}
        self._meaning = meaning

    def read(self, value: object, at: str, reading: Reading) -> Tres:
        if isinstance(value, str):
            return self._text(value, at, reading)
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write {{ cpu = 16, mem = 65536 }}")
            return {}
        return self._table(value, at, reading)

    def _text(self, text: str, at: str, reading: Reading) -> Tres:
        tres = parse_tres(text, self._meaning)
        if isinstance(tres, str) or min(tres.values(), default=0) < 0:
            reading.wrong(at, tres if isinstance(tres, str) else f'"{visible(text)}" has a number below 0')
            return {}
        return tres

    def _table(self, table: dict[str, object], at: str, reading: Reading) -> Tres:
        """Return the amounts of a table; wrong ones are reported to `reading`."""
        tres: Tres = {}
        for key, value in table.items():
            name, place = tres_name(key), f"{at}.{visible(key)}"
            number = tres_number(name, value, self._meaning)
            if (error := tres_name_error(name)) is not None:
                reading.wrong(place, error)
            elif isinstance(number, str) or number < 0:
                reading.wrong(place, number if isinstance(number, str) else f"{number:g} is below 0")
            # `CPU` and `cpu` are one resource, and a table may have both.
            elif name in tres:
                reading.wrong(place, "says again what another field says; keep one of them")
            else:
                tres[name] = number
        return tres

    def write(self, value: Tres) -> dict[str, object]:
        return {name: plain_number(number) for name, number in value.items()}

    def schema(self) -> Schema:
        number = {"type": ["number", "string"], "minimum": 0}
        return {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": number}]}


class Shares:
    """A whole number, or `parent`: the user takes part with the account's own shares."""

    stand_in: int | None = 1

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def read(self, value: object, at: str, reading: Reading) -> int | None:
        if value == "parent":
            return None
        # `type`, since True is an int too.
        if type(value) is int and self._bounds.error(value) is None:
            return value
        reading.wrong(at, f"is {described(value)}; write a whole number up to {self._bounds.high}, or parent")
        return self.stand_in

    def write(self, value: int | None) -> int | str:
        return "parent" if value is None else value

    def schema(self) -> Schema:
        whole = {"type": "integer", "minimum": self._bounds.low, "maximum": self._bounds.high}
        return {"anyOf": [whole, {"const": "parent"}]}


class Factor:
    """A number that something is multiplied with."""

    stand_in = 1.0

    def read(self, value: object, at: str, reading: Reading) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST_FACTOR:
            return float(value)
        reading.wrong(at, f"is {described(value)}; write a number from 0 to {LARGEST_FACTOR:g}")
        return self.stand_in

    def write(self, value: float) -> int | float:
        return plain_number(value)

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": LARGEST_FACTOR}


class MapOf:
    """A table whose keys are names that the file makes up."""

    stand_in: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, key: FieldType[str], value: FieldType[Any]) -> None:
        self._key, self._value = key, value

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write a table of names")
            return self.stand_in
        values: dict[str, Any] = {}
        for key, item in value.items():
            place = f"{at}.{visible(key)}"
            # Only for its errors: the key stays as the file has it.
            self._key.read(key, place, reading)
            values[key] = self._value.read(item, place, reading)
        return values

    def write(self, value: Mapping[str, Any]) -> dict[str, object]:
        return {key: self._value.write(item) for key, item in value.items()}

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self._value.schema()}


STORAGE_PATTERN = r"^projects/[^/\s]+/locations/[^/\s]+/instances/[^/\s]+$"
_STORAGE = re.compile(STORAGE_PATTERN)


def storage_error(text: str) -> str | None:
    """Return what is wrong with the full name of a storage instance."""
    if len(text) <= 1024 and _STORAGE.match(text) and text.isprintable():
        return None
    return f'"{visible(text)}" is no storage; write projects/PROJECT/locations/ZONE/instances/NAME'
