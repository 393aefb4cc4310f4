"""The catalogue: what names in job files stand for, whose it is, and what others may do with it."""

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
"""Told in one answer."""
NO_CARDS = "cpu"
"""The card type of an image for specs without cards."""


class EntryKind(StrEnum):
    """What there are names for."""

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
    """What an image is meant for."""

    TRAINING = "training"
    """Jobs may run in it."""
    DEVELOPMENT = "development"
    SERVING = "serving"


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every entry says."""

    name: str
    """Unique among its kind in its project."""
    project: str = ""
    """Empty: it is the whole cluster's."""
    owner: str = ""
    """Empty: nobody's but the administrators'."""
    access: Access = Access.NONE
    """What the other members of its project may do: change it and write into it, use it for reading, or nothing. Of
    the cluster's own: what everybody may."""
    about: str = ""
    filed: bool = False
    """It stands in the lab's catalogue.toml or cluster.toml, which alone changes it."""

    @property
    def kind(self) -> EntryKind:
        return EntryKind(str(type(self).__struct_config__.tag))

    @property
    def key(self) -> EntryKey:
        return entry_key(self.kind, self.project, self.name)

    @property
    def home(self) -> str:
        """The project whose members `access` is about; empty: everybody."""
        return self.project

    @property
    def to_members(self) -> Access:
        """What those members may do."""
        return self.access


class DatasetEntry(Entry, frozen=True, kw_only=True, tag="dataset"):
    source: DatasetSource = DatasetSource.PRIVATE
    path: str = ""
    """Of a private one."""
    versions: dict[str, str] = {}
    """Of others: folders by name of the version."""


class AlgorithmEntry(Entry, frozen=True, kw_only=True, tag="algorithm"):
    source: AlgorithmSource = AlgorithmSource.OWN
    path: str = ""


class ModelEntry(Entry, frozen=True, kw_only=True, tag="model"):
    source: ModelSource = ModelSource.PRIVATE
    path: str = ""
    versions: dict[str, str] = {}
    """Of a favourite."""


class VolumeEntry(Entry, frozen=True, kw_only=True, tag="volume"):
    path: str = ""


class ImageEntry(Entry, frozen=True, kw_only=True, tag="image"):
    image: str = ""
    """As `model.image` writes it."""
    scopes: tuple[Scope, ...] = (Scope.TRAINING,)
    card_types: tuple[str, ...] = ()
    """Vendors or models of cards that it is made for, and `cpu` for none; empty: any."""
    mpi: Mpi | None = None
    """Whose `mpirun` it has; None: none, or nobody says."""


class SpecEntry(Entry, frozen=True, kw_only=True, tag="spec"):
    spec: NodeSpec = NodeSpec()


class PoolEntry(Entry, frozen=True, kw_only=True, tag="pool"):
    nodes: tuple[str, ...] = ()
    """Empty: those that cluster.toml puts into the pool of this name."""


class ProjectEntry(Entry, frozen=True, kw_only=True, tag="project"):
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Groups of the system, all of whose members are in it."""

    @property
    def home(self) -> str:
        return self.name

    @property
    def to_members(self) -> Access:
        """They see at least that they are in it."""
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
    """What one entry was when the asker looked, and what it is to be. Refused where it is another by now."""

    before: AnyEntry | None
    """None: a new one."""
    after: AnyEntry | None
    """None: it goes."""


class EntryRow(msgspec.Struct, frozen=True):
    """An entry as the asker may see it."""

    entry: AnyEntry
    may: Access
    """What the asker may do with it."""
    of_rules: bool = False
    """It is cluster.toml's, and no part of the catalogue."""


class CatalogueShown(msgspec.Struct, frozen=True):
    """What the asker may see, by kind, project and name."""

    rows: tuple[EntryRow, ...]
    admin: bool = False
    """The asker may change all of it, and add what is the whole cluster's."""
    projects: tuple[str, ...] = ()
    """Those that the asker is in."""
    asker: str = ""
