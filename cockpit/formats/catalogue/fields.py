"""The fields of the catalogue's entries, once for each kind: TOML, the settings of commands, and the JSON Schema."""

from __future__ import annotations

from typing import Any, Final

from cockpit.formats.job.fields import NODE_SPEC
from cockpit.formats.kinds import Choice, ImageText, ListOf, Path, Reading, Schema, Text
from cockpit.formats.rulekinds import MapOf
from cockpit.formats.tables import Field, Table
from cockpit.model.catalogue import (
    CLUSTERWIDE,
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
from cockpit.model.rules.catalogue import MOST_WORDS
from cockpit.model.spec import Access

_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)
_WORDS = ListOf(Text(minLength=1), MOST_WORDS)
_VERSIONS = Field(
    name="versions",
    attribute="versions",
    kind=MapOf(_NAME, Path()),
    about="Of a source that has versions: the folder of each, by its name.",
)
_PATH = Field(name="path", attribute="path", kind=Path(), about="Its folder on the machines that run jobs.")
_CARD_TYPES = "Vendors or models of cards that it is made for, cpu for none; without it, any."


def _common(kind: EntryKind) -> list[Field]:
    """Return the fields that all entries have; some kinds belong to no project."""
    project = Field(
        name="project",
        attribute="project",
        kind=_NAME,
        about="The project whose it is; without it, the whole cluster's.",
    )
    return [
        Field(name="name", attribute="name", kind=_NAME, required=True, about="Give the name that job files say."),
        *([] if kind in CLUSTERWIDE else [project]),
        Field(name="owner", attribute="owner", kind=Text(minLength=1), about="The user whose it is."),
        Field(
            name="access",
            attribute="access",
            kind=Choice(Access),
            about="What the other members of the project may do: change it (rw), use it (ro), or nothing (none).",
        ),
        Field(name="about", attribute="about", kind=Text(), about="What it is, in a sentence."),
    ]


def _source(words: Any) -> Field:  # noqa: ANN401 - an enumeration
    return Field(name="source", attribute="source", kind=Choice(words), about=f"One of {', '.join(words)}.")


class _SpecTable(Table[SpecEntry]):
    """Reads an entry whose file form has a spec's own fields beside its name."""

    def __init__(self) -> None:
        super().__init__(SpecEntry, _common(EntryKind.SPEC))
        self._node_fields = [each for each in NODE_SPEC.fields if each.name != "name"]
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
            Field(
                name="image",
                attribute="image",
                kind=ImageText(),
                about="What it is: host, dir:PATH, tar:PATH, or a name for podman or docker.",
            ),
            Field(
                name="scopes",
                attribute="scopes",
                kind=ListOf(Choice(Scope), MOST_WORDS),
                about="What it is meant for; jobs run only in one for training.",
            ),
            Field(name="card_types", attribute="card_types", kind=_WORDS, about=_CARD_TYPES),
            Field(name="mpi", attribute="mpi", kind=Choice(Mpi), about="The MPI that it has: openmpi or mpich."),
        ],
    ),
    EntryKind.SPEC: _SpecTable(),
    EntryKind.POOL: Table(
        PoolEntry,
        [
            *_common(EntryKind.POOL),
            Field(
                name="nodes",
                attribute="nodes",
                kind=_WORDS,
                about="Its nodes; without any, those that cluster.toml puts into the pool of this name.",
            ),
        ],
    ),
    EntryKind.PROJECT: Table(
        ProjectEntry,
        [
            *_common(EntryKind.PROJECT),
            Field(name="users", attribute="users", kind=_WORDS, about="Users who are in it."),
            Field(
                name="groups",
                attribute="groups",
                kind=_WORDS,
                about="Groups of the system, all of whose members are in it.",
            ),
        ],
    ),
    EntryKind.USER: Table(
        UserEntry,
        [
            *_common(EntryKind.USER),
            Field(name="email", attribute="email", kind=Text(), about="The user's mail address."),
        ],
    ),
}


def entry_values(entry: AnyEntry) -> dict[str, object]:
    """Return the fields of an entry that differ from the defaults, as a file writes them."""
    return TABLES[entry.kind].write(entry)
