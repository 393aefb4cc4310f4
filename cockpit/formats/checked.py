"""Kinds of values that check their rule while they are read, for files that are not checked again by the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from cockpit.formats.kinds import FieldType, Reading, Schema, Text, WholeNumber
from cockpit.formats.measures import Duration, Memory
from cockpit.model.rules.bounds import MEMORY_MIB, Bounds
from cockpit.model.rules.spec import label_error

Value = TypeVar("Value")


class Checked(Generic[Value]):
    """A kind of value with a rule: `trouble` returns what is wrong with a value, or None."""

    def __init__(self, kind: FieldType[Value], trouble: Callable[[Value], str | None]) -> None:
        self.kind = kind
        self._trouble = trouble
        self.stand_in = kind.stand_in

    def read(self, value: object, at: str, reading: Reading) -> Value:
        read = self.kind.read(value, at, reading)
        if read == self.stand_in or (trouble := self._trouble(read)) is None:
            return read
        reading.wrong(at, trouble)
        return self.stand_in

    def write(self, value: Value) -> object:
        return self.kind.write(value)

    def schema(self) -> Schema:
        return self.kind.schema()


def whole(bounds: Bounds) -> Checked[int]:
    return Checked(WholeNumber(bounds), bounds.error)


def duration(bounds: Bounds) -> Checked[int]:
    return Checked(Duration(bounds), bounds.error)


def memory() -> Checked[int]:
    return Checked(Memory(), MEMORY_MIB.error)


def label(longest: int) -> Checked[str]:
    """Return the kind of a short text, such as the name of a card model or pool, of at most `longest` characters."""

    def trouble(text: str) -> str | None:
        return f"has more than {longest} characters" if len(text) > longest else label_error(text)

    return Checked(Text(minLength=1, maxLength=longest), trouble)
