"""An entry of every kind, as somebody sees them."""

from __future__ import annotations

from cockpit.model.catalogue import (
    AlgorithmEntry,
    AnyEntry,
    CatalogueShown,
    DatasetEntry,
    EntryRow,
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
from cockpit.model.spec import Access, NodeSpec

ENTRIES: tuple[AnyEntry, ...] = (
    DatasetEntry(
        name="corpus", project="nlp", owner="alice", access=Access.RO, about="texts of the web", path="/data/corpus"
    ),
    DatasetEntry(
        name="coco",
        access=Access.RO,
        source=DatasetSource.ANNOTATION,
        versions={"v1": "/data/coco/1", "v2": "/data/coco/2"},
    ),
    AlgorithmEntry(name="vit", project="nlp", owner="bob", source=AlgorithmSource.FAVORITE, path="/algo/vit"),
    ModelEntry(name="bert", access=Access.RO, source=ModelSource.PRETRAINED, path="/models/bert", filed=True),
    VolumeEntry(name="scratch", project="nlp", owner="bob", access=Access.RW, path="/scratch"),
    ImageEntry(
        name="torch",
        access=Access.RO,
        image="dir:/images/torch",
        scopes=(Scope.TRAINING, Scope.DEVELOPMENT),
        card_types=("nvidia", "cpu"),
        mpi=Mpi.OPENMPI,
    ),
    SpecEntry(
        name="big",
        access=Access.RO,
        spec=NodeSpec(cpus=8, memory_mib=65536, card_milli=4000, card_models=("A100", "H100")),
    ),
    PoolEntry(name="fast", access=Access.RO, nodes=("n01", "n02")),
    ProjectEntry(name="nlp", owner="alice", access=Access.RO, users=("alice", "bob"), groups=("lab",)),
    UserEntry(name="alice", owner="alice", access=Access.RO, email="alice@lab.example"),
)


def catalogue_shown() -> CatalogueShown:
    """To alice, who is in nlp."""
    rows = [EntryRow(each, Access.RW if each.owner == "alice" else each.access) for each in ENTRIES]
    rows.append(EntryRow(PoolEntry(name="cpu", access=Access.RO, nodes=("n03",), filed=True), Access.RO, of_rules=True))
    return CatalogueShown(tuple(rows), projects=("nlp",), user="alice")
