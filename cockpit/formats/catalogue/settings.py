"""`SETTING=VALUE` words, as commands take them: an entry with some of its fields changed."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.errors import SpecErrors
from cockpit.formats.catalogue.fields import TABLES
from cockpit.formats.kinds import Reading, Schema
from cockpit.model.catalogue import AnyEntry, EntryKind
from cockpit.model.text import visible


def with_settings(kind: EntryKind, values: dict[str, object], words: Iterable[str], folder: str, home: str) -> AnyEntry:
    """Return the entry's fields after the changes in `words`. An empty value removes a field; for lists `+a,b` adds and
    `-a` removes; `versions.v2=PATH` sets one of several. Raises `SpecErrors` with all errors."""
    table, changed, errors = TABLES[kind], dict(values), list[str]()
    schemas = {field.name: field.kind.schema() for field in table.fields}
    for word in words:
        name, equals, text = word.partition("=")
        field, dot, part = name.partition(".")
        if not equals or not field:
            errors.append(f"{visible(word)}: write SETTING=VALUE, such as access=ro")
        elif dot:
            _set_part(changed, field, part, text)
        elif text:
            changed[field] = _value(text, schemas.get(field, {}), changed.get(field))
        else:
            changed.pop(field, None)
    reading = Reading(folder, home)
    entry: AnyEntry = table.read(changed, "", reading)
    if errors or reading.errors:
        raise SpecErrors([*errors, *reading.errors])
    return entry


def _set_part(values: dict[str, object], field: str, part: str, text: str) -> None:
    before = values.get(field)
    parts = dict(before) if isinstance(before, dict) else {}
    if text:
        parts[part] = text
    else:
        parts.pop(part, None)
    values[field] = parts


def _value(text: str, schema: Schema, before: object) -> object:
    """Return the value as a file would contain it."""
    if schema.get("type") == "array":
        return _list(text, before if isinstance(before, list) else [])
    if schema.get("type") == "string" or "enum" in schema:
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _list(text: str, before: list[object]) -> list[object]:
    words = [word for each in text.split(",") if (word := each.strip())]
    if not all(word[0] in "+-" for word in words):
        return list(words)
    added = [word[1:] for word in words if word[0] == "+"]
    gone = {word[1:] for word in words if word[0] == "-"}
    return [each for each in dict.fromkeys([*before, *added]) if each not in gone]
