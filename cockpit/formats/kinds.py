"""The kinds of values of fields in files. Each kind reads, writes and describes its values (JSON Schema) in one place.

Reading does not stop at an error: a wrong value leaves a sentence in `Reading.errors` and is replaced by the kind's
`stand_in`, a value that breaks no rule, so that everything else is still checked.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from cockpit.formats.documents import AmbiguousText
from cockpit.model.ids import Millis
from cockpit.model.image import HOST, ImageKind, image_of
from cockpit.model.rules.bounds import MOST_VARIABLES, VARIABLE_PATTERN, Bounds
from cockpit.model.text import visible

Schema = dict[str, Any]
Value = TypeVar("Value")


class Reading:
    """The context in which one job's values are read, and the errors in them."""

    def __init__(self, folder: str, home: str, now: Millis | None = None) -> None:
        self.folder = folder
        """Absolute folder of relative paths."""
        self.home = home
        """Home folder, for `~`; empty if unknown."""
        self.now = now
        """Present time, for `now` in moments; None if unknown."""
        self.errors: list[str] = []
        self.warnings: list[str] = []
        """Sentences about values that are ignored."""

    def wrong(self, at: str, sentence: str) -> None:
        """Note an error of the value at the path `at`."""
        self.errors.append(f"{at}: {sentence}" if at else sentence)


class FieldType(Protocol[Value]):
    """A kind of value: how it is read, written and described in the schema."""

    @property
    def stand_in(self) -> Value:
        """Return the value that replaces a wrong one."""
        ...

    def read(self, value: object, at: str, reading: Reading) -> Value:
        """Convert a value of a file to the model's; `at` is its path in the file, for errors."""
        ...

    def write(self, value: Value) -> object:
        """Convert a value of the model to the file's; `read` returns an equal value for it."""
        ...

    def schema(self) -> Schema:
        """Return the JSON Schema of the file's values."""
        ...


def described(value: object) -> str:
    """Describe a value of a file for an error: `the number 3`, `a list`."""
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
    """Text. Unquoted YAML that could be a number or a date is refused, because YAML readers differ in it."""

    stand_in = "x"

    def __init__(self, **schema: object) -> None:
        self._schema = schema

    def read(self, value: object, at: str, reading: Reading) -> str:
        # Not isinstance: `AmbiguousText` is a str, too.
        if type(value) is str:
            return value
        if isinstance(value, AmbiguousText):
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


class WholeNumber:
    """A whole number. Its bounds are checked later, by the rules of the spec."""

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
        """`also`: further words that mean one of the choices."""
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
    """A path; a relative one starts at the file's folder. `.` and `..` are resolved without looking at links."""

    stand_in = "/stand-in"

    def read(self, value: object, at: str, reading: Reading) -> str:
        if not isinstance(value, str) or not value:
            reading.wrong(at, f"is {described(value or None)}; write the path of a folder")
            return self.stand_in
        # `~ann` is another user's home, which is looked up nowhere.
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
    """An image. The path of `dir:PATH` and `tar:PATH` is read like any other path."""

    stand_in = HOST

    def read(self, value: object, at: str, reading: Reading) -> str:
        # An empty image is left to the rule, which says what an image is.
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
    """Environment variables. Whole numbers need no quotes."""

    stand_in: Mapping[str, str] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, str]:
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write NAME: value pairs")
            return self.stand_in
        text = Text()
        return {
            # `type`: true and false are ints in Python, and in YAML they are also what `yes` and `no` mean.
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
    """Return a value as it would be written in a list, for an error."""
    if isinstance(value, str):
        return f'"{visible(value)}"'
    return "…" if value is None else described(value).removeprefix("the number ")


class ListOf:
    """A list of values of one kind. Its length is checked later, by the rules of the spec."""

    def __init__(self, item: FieldType[Any], most: int, least: int = 0) -> None:
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
    """A single value in the file that is a tuple in the model."""

    def __init__(self, item: FieldType[Any]) -> None:
        self.stand_in: tuple[Any, ...] = ()
        self._item = item

    def read(self, value: object, at: str, reading: Reading) -> tuple[Any, ...]:
        return (self._item.read(value, at, reading),)

    def write(self, value: tuple[Any, ...]) -> object:
        return self._item.write(value[0])

    def schema(self) -> Schema:
        return self._item.schema()


def _normal(path: str) -> str:
    """Normalise a path. Two leading slashes, which POSIX leaves undefined, become one."""
    return "/" + posixpath.normpath(path).lstrip("/")
