"""Reads and writes catalogue.toml, whose fields are declared here once for each kind of entry.

The engine reads the file when it starts; commands apply and export others, change entries by `SETTING=VALUE` words,
and publish the JSON Schema. All of these use the same tables of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cockpit.errors import SpecErrors
from cockpit.formats.job.fields import NODE_SPEC
from cockpit.formats.kinds import Choice, ImageText, ListOf, Path, Reading, Schema, Text, described
from cockpit.formats.rulekinds import MapOf
from cockpit.formats.tables import Field, Table
from cockpit.formats.tomltext import parse_toml, toml_table
from cockpit.model.catalogue import (
    CLUSTERWIDE,
    ENTRIES,
    AlgorithmEntry,
    AnyEntry,
    DatasetEntry,
    EntryKind,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    ProjectEntry,
    Scope,
    SpecEntry,
    UserEntry,
    VolumeEntry,
)
from cockpit.model.image import Mpi
from cockpit.model.mounts import AlgorithmSource, DatasetSource, ModelSource
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN
from cockpit.model.rules.catalogue import MOST_WORDS, entry_errors
from cockpit.model.spec import Access
from cockpit.model.text import visible

_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)
_WORDS = ListOf(Text(minLength=1), MOST_WORDS)
_VERSIONS = Field("versions", MapOf(_NAME, Path()), "Of a source that has versions: the folder of each, by its name.")
_PATH = Field("path", Path(), "Its folder on the machines that run jobs.")
_CARD_TYPES = "Vendors or models of cards that it is made for, cpu for none; without it, any."


def _common(kind: EntryKind) -> list[Field]:
    """Return the fields that all entries have; some kinds belong to no project."""
    project = Field("project", _NAME, "The project whose it is; without it, the whole cluster's.")
    return [
        Field("name", _NAME, "Give the name that job files say.", required=True),
        *([] if kind in CLUSTERWIDE else [project]),
        Field("owner", Text(minLength=1), "The user whose it is."),
        Field(
            "access",
            Choice(Access),
            "What the other members of the project may do: change it (rw), use it (ro), or nothing (none).",
        ),
        Field("about", Text(), "What it is, in a sentence."),
    ]


def _source(words: Any) -> Field:  # noqa: ANN401 - an enumeration
    return Field("source", Choice(words), f"One of {', '.join(words)}.")


class _SpecTable(Table[SpecEntry]):
    """Reads an entry whose file form has a spec's own fields beside its name."""

    def __init__(self) -> None:
        super().__init__(SpecEntry, _common(EntryKind.SPEC))
        self._node_fields = [each for each in NODE_SPEC.fields if each.name != "name"]
        # `fields` has both for the schema and for settings; reading takes them apart again.
        self._own_fields, self.fields = self.fields, (*self.fields, *self._node_fields)

    def read(self, value: object, at: str, reading: Reading) -> SpecEntry:
        if not isinstance(value, dict):
            return super().read(value, at, reading)
        node = {each.name for each in self._node_fields} & value.keys()
        own = super().read({name: item for name, item in value.items() if name not in node}, at, reading)
        spec = NODE_SPEC.read({name: item for name, item in value.items() if name in node}, at, reading)
        return SpecEntry(
            name=own.name, project=own.project, owner=own.owner, access=own.access, about=own.about, spec=spec
        )

    def write(self, value: SpecEntry) -> dict[str, object]:
        written = {
            each.name: each.kind.write(getattr(value, each.attribute))
            for each in self._own_fields
            if each.required or self._differs(each, value)
        }
        return {**written, **NODE_SPEC.write(value.spec)}

    def schema(self) -> Schema:
        node = NODE_SPEC.schema()["anyOf"][1]["properties"]
        fields = {each.name: each for each in self._own_fields}
        properties = {name: {"description": each.about, **each.kind.schema()} for name, each in fields.items()}
        properties |= {each.name: node[each.name] for each in self._node_fields}
        return {"type": "object", "properties": properties, "additionalProperties": False, "required": ["name"]}


TABLES: Final[dict[EntryKind, Table[Any]]] = {
    EntryKind.DATASET: Table(DatasetEntry, [*_common(EntryKind.DATASET), _source(DatasetSource), _PATH, _VERSIONS]),
    EntryKind.ALGORITHM: Table(AlgorithmEntry, [*_common(EntryKind.ALGORITHM), _source(AlgorithmSource), _PATH]),
    EntryKind.MODEL: Table(ModelEntry, [*_common(EntryKind.MODEL), _source(ModelSource), _PATH, _VERSIONS]),
    EntryKind.VOLUME: Table(VolumeEntry, [*_common(EntryKind.VOLUME), _PATH]),
    EntryKind.IMAGE: Table(
        ImageEntry,
        [
            *_common(EntryKind.IMAGE),
            Field("image", ImageText(), "What it is: host, dir:PATH, tar:PATH, or a name for podman or docker."),
            Field(
                "scopes", ListOf(Choice(Scope), MOST_WORDS), "What it is meant for; jobs run only in one for training."
            ),
            Field("card_types", _WORDS, _CARD_TYPES),
            Field("mpi", Choice(Mpi), "The MPI that it has: openmpi or mpich."),
        ],
    ),
    EntryKind.SPEC: _SpecTable(),
    EntryKind.POOL: Table(
        PoolEntry,
        [
            *_common(EntryKind.POOL),
            Field("nodes", _WORDS, "Its nodes; without any, those that cluster.toml puts into the pool of this name."),
        ],
    ),
    EntryKind.PROJECT: Table(
        ProjectEntry,
        [
            *_common(EntryKind.PROJECT),
            Field("users", _WORDS, "Users who are in it."),
            Field("groups", _WORDS, "Groups of the system, all of whose members are in it."),
        ],
    ),
    EntryKind.USER: Table(UserEntry, [*_common(EntryKind.USER), Field("email", Text(), "The user's mail address.")]),
}


def entry_values(entry: AnyEntry) -> dict[str, object]:
    """Return the fields of an entry that differ from the defaults, as a file writes them."""
    return TABLES[entry.kind].write(entry)


def with_settings(kind: EntryKind, values: dict[str, object], words: Iterable[str], folder: str, home: str) -> AnyEntry:
    """Return the entry's fields after the changes in `words`. An empty value removes a field; for lists `+a,b` adds and
    `-a` removes; `versions.v2=PATH` sets one of several. Raises `SpecErrors` with all errors."""
    table, changed, errors = TABLES[kind], dict(values), list[str]()
    # The schema tells how a word becomes a value, so that a new field needs nothing here.
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
    # Numbers as a file has them; anything else stays text, and the field's own rule judges it.
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _list(text: str, before: list[object]) -> list[object]:
    words = [word for each in text.split(",") if (word := each.strip())]
    # Words without signs replace the list.
    if not all(word[0] in "+-" for word in words):
        return list(words)
    added = [word[1:] for word in words if word[0] == "+"]
    gone = {word[1:] for word in words if word[0] == "-"}
    return [each for each in dict.fromkeys([*before, *added]) if each not in gone]


HEADINGS = {f"{kind}s": kind for kind in ENTRIES}
"""`[[datasets]]` holds datasets."""
_ABOUT = "The catalogue: what names in job files stand for. `cockpit schema catalogue-file` describes every key."


def read_catalogue(text: str, source: str = "catalogue.toml", folder: str = "/", home: str = "") -> list[AnyEntry]:
    """Return all entries. Relative paths begin at `folder`. Raises `SpecErrors` with all errors, each behind source and
    place: `datasets[0].path: …`."""
    return read_entries(parse_toml(text, source), f"{source}: ", Reading(folder, home))


def read_entries(document: Mapping[str, object], source: str, reading: Reading) -> list[AnyEntry]:
    """Return the entries of a table in the form of catalogue.toml. `source` leads every error."""
    entries = list(_entries(document, reading))
    errors = [*reading.errors, *_repeated_names(entries)]
    for at, entry in entries if not reading.errors else ():
        errors += [f"{at}.{error}" for error in entry_errors(entry)]
    if errors:
        raise SpecErrors([f"{visible(source, 200)}{error}" for error in errors])
    return [entry for _, entry in entries]


def catalogue_text(entries: Iterable[AnyEntry]) -> str:
    """Return a file that `read_catalogue` reads back as the same entries."""
    listed: dict[str, object] = {}
    for heading, kind in HEADINGS.items():
        if rows := [entry_values(each) for each in entries if each.kind is kind]:
            listed[heading] = rows
    return "\n".join([f"# {_ABOUT}", *toml_table(listed), ""])


def catalogue_schema() -> Schema:
    """Return the JSON Schema 2020-12 of catalogue.toml, published by `cockpit schema catalogue-file`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:cockpit-cluster:catalogue:1",
        "title": "cockpit's catalogue",
        "type": "object",
        "properties": {name: {"type": "array", "items": TABLES[kind].schema()} for name, kind in HEADINGS.items()},
        "additionalProperties": False,
    }


def _entries(document: Mapping[str, object], reading: Reading) -> Iterator[tuple[str, AnyEntry]]:
    """Yield the entries of all headings, each with its place."""
    for heading, rows in document.items():
        kind = HEADINGS.get(heading)
        if kind is None:
            reading.wrong(visible(heading), f"is no part of a catalogue; there are {', '.join(HEADINGS)}")
        elif not isinstance(rows, list):
            reading.wrong(heading, f"is {described(rows)}; write [[{heading}]]")
        else:
            yield from _of_kind(kind, heading, rows, reading)


def _of_kind(kind: EntryKind, heading: str, rows: Sequence[object], reading: Reading) -> Iterator[tuple[str, AnyEntry]]:
    for index, row in enumerate(rows):
        at = f"{heading}[{index}]"
        yield at, TABLES[kind].read(row, at, reading)


def _repeated_names(entries: Iterable[tuple[str, AnyEntry]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for at, entry in entries:
        earlier = first.setdefault(entry.key, at)
        if earlier != at:
            yield f"{at}.name: {visible(entry.name)} is the name of {earlier} too; give another"
