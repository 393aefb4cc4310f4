"""The catalogue: what names in job files mean, who owns them, and what other users may do with them."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec

from cockpit.model.image import Mpi
from cockpit.model.mounts import AlgorithmSource, DatasetSource, ModelSource
from cockpit.model.spec import Access, NodeSpec

EntryKey = NewType("EntryKey", str)
"""`dataset/nlp/corpus`: kind, project (empty: the whole cluster's) and name. No name has a slash."""

MOST_ENTRIES = 20_000
"""The most entries in one answer."""
NO_CARDS = "cpu"
"""The card type of an image for specs without cards."""


class EntryKind(StrEnum):
    """The kinds of entries."""

    DATASET = "dataset"
    ALGORITHM = "algorithm"
    MODEL = "model"
    VOLUME = "volume"
    IMAGE = "image"
    SPEC = "spec"
    POOL = "pool"
    PROJECT = "project"
    USER = "user"


class Scope(StrEnum):
    """The kinds of jobs that an image is meant for."""

    TRAINING = "training"
    """Jobs may run in it."""
    DEVELOPMENT = "development"
    SERVING = "serving"


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The fields that every entry has."""

    name: str
    """Unique among its kind in its project."""
    project: str = ""
    """The project of the entry; empty: it belongs to the whole cluster."""
    owner: str = ""
    """The owner; empty: the administrators own it."""
    access: Access = Access.NONE
    """The rights of the other members of its project: to change it and write into it, to read it, or none. For an entry
    of the cluster: the rights of every user."""
    about: str = ""
    filed: bool = False
    """Whether the entry is in the lab's catalogue.toml or in cluster.toml, and is changed only there."""

    @property
    def kind(self) -> EntryKind:
        return EntryKind(str(type(self).__struct_config__.tag))

    @property
    def key(self) -> EntryKey:
        return entry_key(self.kind, self.project, self.name)

    @property
    def home(self) -> str:
        """The project to whose members `access` applies; empty: all users."""
        return self.project

    @property
    def to_members(self) -> Access:
        """Return the rights of the project's members."""
        return self.access


class DatasetEntry(Entry, frozen=True, kw_only=True, tag="dataset"):
    source: DatasetSource = DatasetSource.PRIVATE
    path: str = ""
    """The folder of a private entry."""
    versions: dict[str, str] = {}
    """The folders of other entries, by the name of the version."""


class AlgorithmEntry(Entry, frozen=True, kw_only=True, tag="algorithm"):
    source: AlgorithmSource = AlgorithmSource.OWN
    path: str = ""


class ModelEntry(Entry, frozen=True, kw_only=True, tag="model"):
    source: ModelSource = ModelSource.PRIVATE
    path: str = ""
    versions: dict[str, str] = {}
    """The versions of a favourite entry."""


class VolumeEntry(Entry, frozen=True, kw_only=True, tag="volume"):
    path: str = ""


class ImageEntry(Entry, frozen=True, kw_only=True, tag="image"):
    image: str = ""
    """The image, written as `model.image` describes."""
    scopes: tuple[Scope, ...] = (Scope.TRAINING,)
    card_types: tuple[str, ...] = ()
    """Vendors or models of cards that it is made for, and `cpu` for none; empty: any."""
    mpi: Mpi | None = None
    """The MPI whose `mpirun` the image has; None: none or unknown."""


class SpecEntry(Entry, frozen=True, kw_only=True, tag="spec"):
    spec: NodeSpec = NodeSpec()


class PoolEntry(Entry, frozen=True, kw_only=True, tag="pool"):
    nodes: tuple[str, ...] = ()
    """The nodes of the pool; empty: those that cluster.toml puts into the pool of this name."""


class ProjectEntry(Entry, frozen=True, kw_only=True, tag="project"):
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of the system, all of whose members are in it."""

    @property
    def home(self) -> str:
        return self.name

    @property
    def to_members(self) -> Access:
        """Return the members' rights: they see at least that they are members."""
        return Access.RO if self.access is Access.NONE else self.access


class UserEntry(Entry, frozen=True, kw_only=True, tag="user"):
    email: str = ""


AnyEntry = (
    DatasetEntry
    | AlgorithmEntry
    | ModelEntry
    | VolumeEntry
    | ImageEntry
    | SpecEntry
    | PoolEntry
    | ProjectEntry
    | UserEntry
)
ENTRIES: dict[EntryKind, type[AnyEntry]] = {
    EntryKind.DATASET: DatasetEntry,
    EntryKind.ALGORITHM: AlgorithmEntry,
    EntryKind.MODEL: ModelEntry,
    EntryKind.VOLUME: VolumeEntry,
    EntryKind.IMAGE: ImageEntry,
    EntryKind.SPEC: SpecEntry,
    EntryKind.POOL: PoolEntry,
    EntryKind.PROJECT: ProjectEntry,
    EntryKind.USER: UserEntry,
}
CLUSTERWIDE = frozenset({EntryKind.POOL, EntryKind.PROJECT, EntryKind.USER})
"""Kinds that are in no project."""


def entry_key(kind: EntryKind, project: str, name: str) -> EntryKey:
    return EntryKey(f"{kind}/{project}/{name}")


class EntryChange(msgspec.Struct, frozen=True):
    """A change of one entry: the entry as the user saw it, and the new one. It is refused if the entry has changed
    meanwhile."""

    before: AnyEntry | None
    """The entry before the change; None: it is new."""
    after: AnyEntry | None
    """The entry after the change; None: it is removed."""


class EntryRow(msgspec.Struct, frozen=True):
    """An entry as the user may see it."""

    entry: AnyEntry
    may: Access
    """The user's own rights."""
    of_rules: bool = False
    """Whether the entry comes from cluster.toml and is no part of the catalogue."""


class CatalogueShown(msgspec.Struct, frozen=True):
    """The entries that a user may see, by kind, project and name."""

    rows: tuple[EntryRow, ...]
    admin: bool = False
    """The user may change all of it, and add what is the whole cluster's."""
    projects: tuple[str, ...] = ()
    """The projects of the user."""
    # The name on the wire is older than the field's.
    user: str = msgspec.field(default="", name="asker")
