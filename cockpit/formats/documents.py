"""Parsed documents: the plain values of a file with their places in it, and its syntax errors."""

from __future__ import annotations

from typing import NamedTuple


class Document(NamedTuple):
    """The plain value of one job."""

    where: str
    """Place that follows the file's name in errors: `:17` (line), `[3]` (index), or empty."""
    value: object


class Documents(NamedTuple):
    """All documents of a text."""

    found: list[Document]
    errors: list[str]
    """Syntax errors, each of which begins with its place: `:17: …`."""


class AmbiguousText(str):
    """Unquoted text that some readers of the format take for a number or a date."""

    __slots__ = ()


class UnreadableError(ValueError):
    """A value is refused while it is parsed; the error text is a clause for the user."""


def listed(value: object) -> list[Document]:
    """Return the documents of a value: one job, or each of a list of jobs."""
    if isinstance(value, list):
        return [Document(f"[{index}]", item) for index, item in enumerate(value)]
    return [Document("", value)]
