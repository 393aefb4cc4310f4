"""Tables that people write in TOML, read strictly: every wrong field is told at once, each led by its path.

A *reader* turns what was written into a value, or raises `ValueError` with a clause that says what was expected.
Readers also take text where TOML would have a number or a truth, because flags and environment variables are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from cockpit.errors import SpecErrors
from cockpit.model.quantity import parse_duration, parse_memory
from cockpit.model.text import visible

T = TypeVar("T")
D = TypeVar("D")
Word = TypeVar("Word", bound=StrEnum)
Reader = Callable[[object], T]

LONGEST_TEXT = 63
TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def parse_toml(text: str, source: str) -> dict[str, object]:
    """The table that `text` is; `SpecErrors` where it is no TOML."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecErrors([f"{source}: is no TOML: {error}"]) from None


class Table:
    """One table being read. `errors` is shared by all tables of a file; look at it after everything was taken."""

    def __init__(self, values: Mapping[str, object], path: str, errors: list[str]) -> None:
        self._values = dict(values)
        self._path = path
        self._known: list[str] = []
        self.errors = errors

    def take(self, key: str, read: Reader[T], default: D) -> T | D:
        """The field's value; `default` where it is absent or wrong (which is then among the errors)."""
        self._known.append(key)
        if key not in self._values:
            return default
        try:
            return read(self._values.pop(key))
        except ValueError as wrong:
            self.complain(key, str(wrong))
            return default

    def need(self, key: str, read: Reader[T], stand_in: T) -> T:
        """As `take`, for a field that must be there."""
        if key not in self._values:
            self.complain(key, "is missing")
        return self.take(key, read, stand_in)

    def tables(self, key: str) -> list[Table]:
        """A list of tables; empty where absent."""
        rows = self.take(key, table_list, ())
        return [Table(row, f"{self._where(key)}[{index}]", self.errors) for index, row in enumerate(rows)]

    def table(self, key: str) -> Table:
        """A table; an empty one where absent."""
        return Table(self.take(key, table, {}), self._where(key), self.errors)

    def finish(self) -> None:
        """Complain about every field that nobody took, with the nearest known name."""
        for key in self._values:
            self.complain(visible(key), f"is unknown{did_you_mean(key, self._known)}")

    def complain(self, key: str, clause: str) -> None:
        self.errors.append(f"{self._where(key)}: {clause}")

    def _where(self, key: str) -> str:
        separator = "" if self._path.endswith(": ") else "."
        return f"{self._path}{separator}{key}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where a known word is near, else which ones there are."""
    from difflib import get_close_matches

    choices = list(known)
    near = get_close_matches(word, choices, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(choices)}"


def shown(value: object) -> str:
    """What was written, for an error sentence."""
    return f'"{visible(value)}"' if isinstance(value, str) else visible(str(value))


def text(value: object) -> str:
    """One line without control characters, at most 63 characters."""
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > LONGEST_TEXT:
        raise ValueError(f"must be text of 1 to {LONGEST_TEXT} printable characters, not {shown(value)}")
    return value


def host_name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", value):
        raise ValueError(f"must be a name of letters, digits, dots, dashes and underscores, not {shown(value)}")
    return value


def flag(value: object) -> bool:
    truth = value if isinstance(value, bool) else TRUTHS.get(value.lower()) if isinstance(value, str) else None
    if truth is None:
        raise ValueError(f"must be true or false, not {shown(value)}")
    return truth


def whole(low: int, high: int) -> Reader[int]:
    """A whole number from `low` to `high`."""

    def read(value: object) -> int:
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, not {shown(value)}")
        return number

    return read


def memory_mib(value: object) -> int:
    return _quantity(parse_memory(_plain(value)), 1, "1M", value)


def duration_seconds(low: int) -> Reader[int]:
    """A time of at least `low` seconds."""

    def read(value: object) -> int:
        return _quantity(parse_duration(_plain(value)), low, f"{low}s", value)

    return read


def _plain(value: object) -> object:
    """A bare number in text is a number: `COCKPIT_TIME_LIMIT=600`."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _quantity(parsed: int | str, low: int, least: str, value: object) -> int:
    if isinstance(parsed, str):
        raise ValueError(parsed)  # noqa: TRY004 - the parser's answer is its error clause
    if parsed < low:
        raise ValueError(f"must be at least {least}, not {shown(value)}")
    return parsed


def one_of(words: type[Word]) -> Reader[Word]:
    def read(value: object) -> Word:
        if not isinstance(value, str) or value not in list(words):
            raise ValueError(f"must be {' or '.join(words)}, not {shown(value)}")
        return words(value)

    return read


def list_of(read_item: Reader[T]) -> Reader[tuple[T, ...]]:
    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise ValueError(f"must be a list, not {shown(value)}")  # noqa: TRY004 - readers raise ValueError
        return tuple(read_item(item) for item in value)

    return read


def table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table, not {shown(value)}")  # noqa: TRY004 - readers raise ValueError
    return value


table_list = list_of(table)
