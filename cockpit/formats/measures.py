"""Kinds of fields that measure: memory, time, cards.

The checked kinds at the end test their rule while they are read: for files that the engine does not check again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

from cockpit.formats.kinds import FieldType, Reading, Schema, Text, WholeNumber, described
from cockpit.model.quantity import (
    DURATION_CLOCK_PATTERN,
    DURATION_UNITS_PATTERN,
    MEMORY_PATTERN,
    duration_text,
    memory_text,
    parse_duration,
    parse_memory,
)
from cockpit.model.rules.bounds import CARDS, MEMORY_MIB, PRICE_MILLI, Bounds
from cockpit.model.rules.spec import label_error
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.text import visible


class Memory:
    """MiB, with a unit or without."""

    stand_in = MEMORY_MIB.low

    def read(self, value: object, at: str, reading: Reading) -> int:
        mib = (
            parse_memory(value) if isinstance(value, str | int | float) else f"is {described(value)}; write 512M or 2G"
        )
        if isinstance(mib, int):
            return mib
        reading.wrong(at, mib)
        return self.stand_in

    def write(self, value: int) -> str:
        return memory_text(value)

    def schema(self) -> Schema:
        whole = WholeNumber(MEMORY_MIB).schema()
        return {"anyOf": [whole, {"type": "string", "pattern": MEMORY_PATTERN}], "examples": ["512M", "1.5G", 2048]}


class Price:
    """Thousandths, of a number that nodes' labels say in the same unit."""

    stand_in = 0

    def read(self, value: object, at: str, reading: Reading) -> int:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= PRICE_MILLI.high / 1000:
            return round(1000 * value)
        reading.wrong(at, f"is {described(value)}; write a number such as 0.35")
        return self.stand_in

    def write(self, value: int) -> float | int:
        return value // 1000 if value % 1000 == 0 else value / 1000

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": PRICE_MILLI.high / 1000, "examples": [0.35]}


class Duration:
    """Seconds, in units or on the clock."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.stand_in = bounds.low

    def read(self, value: object, at: str, reading: Reading) -> int:
        seconds = parse_duration(value) if isinstance(value, str | int | float) else f"is {described(value)}; write 10m"
        if isinstance(seconds, int):
            return seconds
        reading.wrong(at, seconds)
        return self.stand_in

    def write(self, value: int) -> str:
        return duration_text(value)

    def schema(self) -> Schema:
        patterns = (DURATION_UNITS_PATTERN, DURATION_CLOCK_PATTERN)
        texts = [{"type": "string", "pattern": pattern} for pattern in patterns]
        return {"anyOf": [WholeNumber(self._bounds).schema(), *texts], "examples": ["10m", "1h30m", "2-12:00:00", 90]}


class Cards:
    """Thousandths of a card: whole cards, or a share below one."""

    stand_in = 0

    def read(self, value: object, at: str, reading: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            reading.wrong(at, f"is {described(value)}; write a whole number or a share such as 0.5, without quotes")
        elif not CARDS.low <= value <= CARDS.high:
            reading.wrong(at, f"{visible(str(value))} is not between {CARDS.low} and {CARDS.high}")
        # With a tolerance, for shares that a program has computed: 0.1 + 0.2 is 0.30000000000000004.
        elif not math.isclose(value * WHOLE_CARD, round(value * WHOLE_CARD), abs_tol=1e-6):
            # Not 0.000, which would be no share at all.
            reading.wrong(at, f"{value} is finer than a thousandth of a card; write {max(value, 0.001):.3f}")
        else:
            return round(value * WHOLE_CARD)
        return self.stand_in

    def write(self, value: int) -> float:
        # Whole numbers without a point, as people write them.
        return value // WHOLE_CARD if value % WHOLE_CARD == 0 else value / WHOLE_CARD

    def schema(self) -> Schema:
        share = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
        return {"anyOf": [WholeNumber(CARDS).schema(), share], "examples": [1, 0.5]}


Value = TypeVar("Value")


class Checked(Generic[Value]):
    """A kind of value with a rule: `trouble` returns what is wrong with a value, or None."""

    def __init__(self, kind: FieldType[Value], trouble: Callable[[Value], str | None]) -> None:
        self.kind = kind
        self._trouble = trouble
        self.stand_in = kind.stand_in

    def read(self, value: object, at: str, reading: Reading) -> Value:
        read = self.kind.read(value, at, reading)
        # A stand-in may be in place of a wrong value, whose error is noted already. As a value of its own it breaks no
        # rule.
        if read == self.stand_in or (trouble := self._trouble(read)) is None:
            return read
        reading.wrong(at, trouble)
        return self.stand_in

    def write(self, value: Value) -> object:
        return self.kind.write(value)

    def schema(self) -> Schema:
        return self.kind.schema()


def address_error(text: str) -> str | None:
    """Return what is wrong with the address of a service; None: nothing, or it is empty."""
    from urllib.parse import urlsplit  # only few configurations name an address

    if not text:
        return None
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError as error:
        return f"is no address: {error}"
    if url.scheme not in {"http", "https"} or not url.hostname:
        return "is no address such as http://127.0.0.1:8080"
    return "must not contain a user or a password" if url.username or url.password else None


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
