"""The kinds of values that fields hold. Each reads, writes and describes itself (JSON Schema), so that the three agree.

Reading never stops at an error: a value that cannot be read leaves a sentence in the `Reading` and is replaced by the
kind's `stand_in`, a value that no rule minds, so that everything else is still checked.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from cockpit.formats.documents import Doubtful
from cockpit.model.ids import Millis
from cockpit.model.image import HOST, ImageKind, image_of
from cockpit.model.rules.bounds import MOST_VARIABLES, VARIABLE_PATTERN, Bounds
from cockpit.model.text import visible

Schema = dict[str, Any]
Value = TypeVar("Value")


class Reading:
    """Where one job's values come from, and what is wrong with them."""

    def __init__(self, folder: str, home: str, now: Millis | None = None) -> None:
        self.folder = folder
        """Absolute; relative paths begin here."""
        self.home = home
        """What `~` stands for; empty where that is not known."""
        self.now = now
        """What `now` stands for in moments; None where that is not known."""
        self.errors: list[str] = []
        self.warnings: list[str] = []
        """What is read, and counts for nothing."""

    def wrong(self, at: str, sentence: str) -> None:
        self.errors.append(f"{at}: {sentence}" if at else sentence)


class Kind(Protocol[Value]):
    """One kind of value."""

    @property
    def stand_in(self) -> Value: ...

    def read(self, value: object, at: str, reading: Reading) -> Value:
        """The model's value of the file's; `at` is its path."""
        ...

    def write(self, value: Value) -> object:
        """The file's value of the model's: reads back equal."""
        ...

    def schema(self) -> Schema: ...


def described(value: object) -> str:
    """A value of a file, for a sentence: `the number 3`, `a list`."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{visible(value)}"'
    if isinstance(value, int | float):
        return f"the number {visible(str(value))}"
    return "a list" if isinstance(value, list) else "a table"


class Text:
    """Words as they stand. What YAML takes for something else has to be quoted, so that every reader sees the same."""

    stand_in = "x"

    def __init__(self, **schema: object) -> None:
        self._schema = schema

    def read(self, value: object, at: str, reading: Reading) -> str:
        if type(value) is str:
            return value
        if isinstance(value, Doubtful):
            reading.wrong(at, f'{visible(value)} is a number or a date to some readers; quote it: "{visible(value)}"')
        elif isinstance(value, bool):
            reading.wrong(at, f"is {described(value)} (so are yes, no, on and off); to mean the word, quote it")
        elif isinstance(value, int | float):
            reading.wrong(at, f'is {described(value)}, not text; quote it: "{visible(str(value))}"')
        else:
            reading.wrong(at, f"is {described(value)}; write text")
        return self.stand_in

    def write(self, value: str) -> str:
        return value

    def schema(self) -> Schema:
        return {"type": "string", **self._schema}


class Whole:
    """A whole number within bounds that the rules check."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.stand_in = bounds.low

    def read(self, value: object, at: str, reading: Reading) -> int:
        if type(value) is int:
            return value
        reading.wrong(at, f"is {described(value)}; write a whole number from {self._bounds.low} on, without quotes")
        return self.stand_in

    def write(self, value: int) -> int:
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self._bounds.low, "maximum": self._bounds.high}


class Flag:
    """true or false."""

    stand_in = False

    def read(self, value: object, at: str, reading: Reading) -> bool:
        if isinstance(value, bool):
            return value
        reading.wrong(at, f"is {described(value)}; write true or false, without quotes")
        return self.stand_in

    def write(self, value: bool) -> bool:
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Choice:
    """One word of an enumeration."""

    def __init__(self, words: type[StrEnum], also: Mapping[str, StrEnum] = MappingProxyType({})) -> None:
        """`also`: other words for some of them."""
        self._words = {word.value: word for word in words} | dict(also)
        self.stand_in = next(iter(words))

    def read(self, value: object, at: str, reading: Reading) -> StrEnum:
        if isinstance(value, str) and value in self._words:
            return self._words[value]
        reading.wrong(at, f"is {described(value)}; write {' or '.join(self._words)}")
        return self.stand_in

    def write(self, value: StrEnum) -> str:
        return value.value

    def schema(self) -> Schema:
        return {"enum": list(self._words)}


class Path:
    """An absolute path; a relative one begins at the file's folder. `.` and `..` are resolved by the text alone."""

    stand_in = "/stand-in"

    def read(self, value: object, at: str, reading: Reading) -> str:
        if not isinstance(value, str) or not value:
            reading.wrong(at, f"is {described(value or None)}; write the path of a folder")
            return self.stand_in
        if value.startswith("~"):
            return self._in_home(value, at, reading)
        return _normal(posixpath.join(reading.folder, value))

    def _in_home(self, value: str, at: str, reading: Reading) -> str:
        tilde, _, rest = value.partition("/")
        if tilde == "~" and reading.home:
            return _normal(posixpath.join(reading.home, rest))
        reading.wrong(at, f'"{visible(value)}" begins with a home that is not known here; write the whole path, or ./~')
        return self.stand_in

    def write(self, value: str) -> str:
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


class ImageText:
    """An image; of `dir:PATH` and `tar:PATH` the path is read as any other."""

    stand_in = HOST

    def read(self, value: object, at: str, reading: Reading) -> str:
        text = Text().read(value, at, reading) if value != "" else ""
        image = image_of(text)
        if image.kind in {ImageKind.DIR, ImageKind.TAR} and image.where:
            return f"{image.kind}:{Path().read(image.where, at, reading)}"
        return text

    def write(self, value: str) -> str:
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


class Environment:
    """Variables. Whole numbers may stand without quotes, as people write them."""

    stand_in: Mapping[str, str] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, str]:
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write NAME: value pairs")
            return self.stand_in
        text = Text()
        return {
            name: str(item) if type(item) is int else text.read(item, f"{at}.{visible(name)}", reading)
            for name, item in value.items()
        }

    def write(self, value: Mapping[str, str]) -> dict[str, str]:
        return dict(value)

    def schema(self) -> Schema:
        return {
            "type": "object",
            "propertyNames": {"pattern": VARIABLE_PATTERN},
            "additionalProperties": {"type": ["string", "integer"]},
            "maxProperties": MOST_VARIABLES,
        }


def _as_item(value: object) -> str:
    """A value as it would stand in the list."""
    if isinstance(value, str):
        return f'"{visible(value)}"'
    return "…" if value is None else described(value).removeprefix("the number ")


class ListOf:
    """Any number of one kind, within bounds that the rules check."""

    def __init__(self, item: Kind[Any], most: int, least: int = 0) -> None:
        self.stand_in: tuple[Any, ...] = (item.stand_in,) * least
        self._item = item
        self._most = most
        self._least = least

    def read(self, value: object, at: str, reading: Reading) -> tuple[Any, ...]:
        if isinstance(value, list):
            return tuple(self._item.read(item, f"{at}[{index}]", reading) for index, item in enumerate(value))
        reading.wrong(at, f"is {described(value)}; write a list: [{_as_item(value)}]")
        return self.stand_in

    def write(self, value: tuple[Any, ...]) -> list[object]:
        return [self._item.write(item) for item in value]

    def schema(self) -> Schema:
        bounds = {"minItems": self._least} if self._least else {}
        return {"type": "array", "items": self._item.schema(), **bounds, "maxItems": self._most}


class Single:
    """One value where the model keeps several."""

    def __init__(self, item: Kind[Any]) -> None:
        self.stand_in: tuple[Any, ...] = ()
        self._item = item

    def read(self, value: object, at: str, reading: Reading) -> tuple[Any, ...]:
        return (self._item.read(value, at, reading),)

    def write(self, value: tuple[Any, ...]) -> object:
        return self._item.write(value[0])

    def schema(self) -> Schema:
        return self._item.schema()


def _normal(path: str) -> str:
    """POSIX lets two leading slashes mean something else; here they do not."""
    return "/" + posixpath.normpath(path).lstrip("/")
