"""A job's fields as short texts, as a form shows them, and the values of a job file that such texts mean.

Words and paths are shown as they are (in quotes where that could not be seen), lists of words with commas between them,
everything else as YAML in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from cockpit.formats.job.fields import JOB, NODE_SPEC
from cockpit.formats.job.mounts import TASK
from cockpit.formats.tables import Field
from cockpit.model.text import is_visible

FIELDS: Final[Mapping[str, Field]] = {field.name: field for field in JOB.fields if not field.alias}
"""The fields of the form by name."""
SPECS, TASKS = "specs", "tasks"
GROUPS: Final[Mapping[str, Mapping[str, Field]]] = {
    SPECS: {field.name: field for field in NODE_SPEC.fields if not field.alias},
    TASKS: {field.name: field for field in TASK.fields},
}
"""Lists whose entries are shown field by field."""
_LAID_OUT: Final = {SPECS: ("cpus", "memory", "cards", "card_models"), TASKS: tuple(GROUPS[TASKS])}
"""The fields of an entry that are always shown."""
_MEMBER: Final = re.compile(rf"(?P<group>{'|'.join(GROUPS)})\[(?P<number>\d+)\]\.(?P<field>\w+)", re.ASCII)
_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})")
"""A character beyond the first 65,536 as JSON escapes it; behind a backslash that is not itself escaped."""
_SHORT: Final = frozenset({"algorithm"})
"""Tables that may be shortened to their path."""


class Member(NamedTuple):
    """A field of one entry of a group: `specs[0].cpus`, `tasks[3].command`."""

    group: str
    number: int
    field: str

    @property
    def path(self) -> str:
        return f"{self.group}[{self.number}].{self.field}"


def member_of(path: str) -> Member | None:
    """Return group and field of a path; None: it belongs to no group."""
    match = _MEMBER.fullmatch(path)
    return None if match is None else Member(match["group"], int(match["number"]), match["field"])


def field_of(path: str) -> Field:
    """Return the field at a path such as `nodes` or `specs[0].cpus`."""
    member = member_of(path)
    return FIELDS[path] if member is None else GROUPS[member.group][member.field]


def member_paths(group: str, number: int) -> list[str]:
    """Return the paths of the fields of one entry that are always shown."""
    return [Member(group, number, name).path for name in _LAID_OUT[group]]


def texts_of(values: Mapping[str, object]) -> dict[str, str]:
    """Return the texts for a job file's mapping; its specs and tasks field by field."""
    texts: dict[str, str] = {}
    for name, value in values.items():
        # Entries with other fields, such as the name of a spec, are shown as one text.
        if name in GROUPS and isinstance(value, list) and value and all(_is_plain_entry(name, each) for each in value):
            for number, entry in enumerate(value):
                texts |= dict.fromkeys(member_paths(name, number), "")
                texts |= {Member(name, number, field).path: _text(item) for field, item in entry.items()}
        else:
            texts[name] = _text(value)
    return texts


def values_of(texts: Mapping[str, str]) -> dict[str, object]:
    """Return a job file's mapping without its blank values."""
    written = {path: _value(field_of(path), text.strip()) for path, text in texts.items() if text.strip()}
    values = {path: value for path, value in written.items() if member_of(path) is None}
    for group in GROUPS:
        entries = _entries(group, written)
        # A text for the whole list wins over its entries.
        if entries and group not in values:
            # An empty task keeps the numbers of those behind it; an empty spec is just not wanted.
            values[group] = entries if group == TASKS else [each for each in entries if each]
    return values


def _is_plain_entry(group: str, value: object) -> bool:
    return isinstance(value, dict) and value.keys() <= GROUPS[group].keys()


def _entries(group: str, written: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the entries by number; an entry without any text is empty."""
    entries: list[dict[str, object]] = []
    for path, value in written.items():
        member = member_of(path)
        if member is not None and member.group == group:
            entries += [{} for _ in range(len(entries), member.number + 1)]
            entries[member.number][member.field] = value
    return entries


def _text(value: object) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else _json(value)
    if isinstance(value, list) and value and all(isinstance(each, str) and _is_word(each) for each in value):
        return ", ".join(value)
    if isinstance(value, dict) and value.keys() == {"path"} and _is_plain(str(value["path"])):
        return str(value["path"])
    return _PAIR.sub(_one_escape, _json(value))


def _json(value: object) -> str:
    """Return the value as JSON, with invisible characters as escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return text if is_visible(text) else json.dumps(value).replace("\x7f", "\\u007f")  # the one that JSON leaves


def _one_escape(pair: re.Match[str]) -> str:
    """Return a surrogate pair, which JSON writes as two escapes, as the one escape that YAML has for it."""
    code = ord(json.loads(f'"{pair[2]}"'))
    return f"{pair[1]}\\U{code:08x}"


def _is_plain(text: str) -> bool:
    """Return whether the text means itself when it is typed into a field."""
    return is_visible(text) and text == text.strip() != "" and text[0] not in '"{['


def _is_word(text: str) -> bool:
    return _is_plain(text) and "," not in text


def _value(field: Field, text: str) -> object:
    """Return what a text in a form means for its field."""
    # The schema tells how a field is written, so that a new field needs nothing here.
    schema = field.kind.schema()
    if schema.get("type") == "string" or "enum" in schema or (field.name in _SHORT and text[:1] != "{"):
        return _unquote(text)
    words = schema.get("type") == "array" and schema["items"].get("type") == "string"
    if words and text[:1] != "[":
        return [word for each in text.split(",") if (word := each.strip())]
    return _yaml_value(text)


def _unquote(text: str) -> str:
    """Return what a text in JSON's quotes holds; any other text as it is, even one that starts with a quote."""
    try:
        value = json.loads(text) if text[:1] == '"' else text
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is no text that a file could hold
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _yaml_value(text: str) -> object:
    """Read the text as a file would be read; invalid YAML stays text, so that the field's own rule reports it."""
    from cockpit.formats.yamltext import yaml_documents

    documents = yaml_documents(f"value: {text}")
    parsed = documents.items[0].value if len(documents.items) == 1 and not documents.errors else None
    return _without_doubt(parsed["value"]) if isinstance(parsed, dict) and parsed.keys() == {"value"} else text


def _without_doubt(value: object) -> object:
    """Return the value with every doubtful word as plain text.

    The form is its only reader, and the field's rule judges it.
    """
    if isinstance(value, dict):
        return {name: _without_doubt(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_doubt(item) for item in value]
    return str(value) if isinstance(value, str) else value
