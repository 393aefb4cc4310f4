"""Parsed documents: the plain values of a file with their places in it, its syntax errors, and the readers of JSON.

JSON that gives a field twice is refused, as in YAML.
"""

from __future__ import annotations

import json
from typing import NamedTuple, NoReturn

from cockpit.model.text import visible


class Document(NamedTuple):
    """The plain value of one job."""

    where: str
    """Place that follows the file's name in errors: `:17` (line), `[3]` (index), or empty."""
    value: object


class Documents(NamedTuple):
    """All documents of a text."""

    items: list[Document]
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


def json_documents(text: str) -> Documents:
    """Read one job, or a list of jobs."""
    try:
        return Documents(listed(json_value(text)), [])
    except UnreadableError as error:
        return Documents([], [f": {error}"])


def json_line_documents(text: str) -> Documents:
    """Read one job per line; empty lines are skipped."""
    documents, errors = [], []
    # Not `splitlines`, which also splits at characters that a JSON text may contain, such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            documents.append(Document(f":{number}", json_value(line)))
        except UnreadableError as error:
            errors.append(f":{number}: {error}")
    return Documents(documents, errors)


def is_json(text: str) -> bool:
    """Return whether the text is valid JSON."""
    try:
        json_value(text)
    except UnreadableError:
        return False
    return True


def json_value(text: str) -> object:
    """Return the value of a JSON text. Raises `UnreadableError`."""
    try:
        return _DECODER.decode(text)
    # It is a ValueError, too, but already has its sentence: the decoder's hooks below raise it.
    except UnreadableError:
        raise
    except json.JSONDecodeError as error:
        advice = "; one job a line needs a file named .jsonl" if error.msg == "Extra data" else ""
        sentence = f"is not JSON: {visible(error.msg)}, line {error.lineno}, column {error.colno}{advice}"
    except RecursionError:
        sentence = "nests deeper than a job does"
    except ValueError:
        sentence = "holds a number with thousands of digits"
    raise UnreadableError(sentence)


def _table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the mapping of a JSON object. Raises `UnreadableError` for a name that is there twice."""
    table = dict(pairs)
    # JSON allows a name twice in one object; Python's decoder would silently keep the last one.
    if len(table) == len(pairs):
        return table
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise UnreadableError(f'"{visible(name)}" is there twice in one table; keep one')
        seen.add(name)
    return table


def _no_number(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is no JSON; write a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_table, parse_constant=_no_number)
