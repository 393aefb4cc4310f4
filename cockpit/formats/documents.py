"""What a text format hands on: plain values with their places, and what could not be parsed."""

from __future__ import annotations

from typing import NamedTuple


class Document(NamedTuple):
    """One job's value as it stands in the text."""

    where: str
    """What follows the file's name in errors: `:17` (line), `[3]` (index), or nothing."""
    value: object


class Documents(NamedTuple):
    """All of a text."""

    found: list[Document]
    errors: list[str]
    """One sentence each, led by the place: `:17: …`."""


class Doubtful(str):
    """Unquoted text that some readers of the format take for a number or a date."""

    __slots__ = ()


class UnreadableError(ValueError):
    """A value is refused while it is parsed; the text is a clause for a person."""


def listed(value: object) -> list[Document]:
    """One job, or each of a list of jobs."""
    if isinstance(value, list):
        return [Document(f"[{index}]", item) for index, item in enumerate(value)]
    return [Document("", value)]
