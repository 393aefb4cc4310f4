"""What of the outside a job sees: algorithm, datasets, models, volumes; each a folder, or a name of the catalogue."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AlgorithmSource(StrEnum):
    """Where in the catalogue an algorithm stands."""

    OWN = "own"
    FAVORITE = "favorite"


class DatasetSource(StrEnum):
    """Where in the catalogue a dataset stands, and so where the job sees it."""

    PRIVATE = "private"
    FAVORITE = "favorite"
    """One of its versions."""
    ANNOTATION = "annotation"
    """The annotations of one of its versions."""


class ModelSource(StrEnum):
    """Where in the catalogue a model stands, and so where the job sees it."""

    PRIVATE = "private"
    PRETRAINED = "pretrained"
    FAVORITE = "favorite"
    """One of its versions."""


VERSIONED = frozenset({DatasetSource.FAVORITE, DatasetSource.ANNOTATION, ModelSource.FAVORITE})
"""Sources of which a version is meant."""


class Found(msgspec.Struct, frozen=True):
    """What a name of the catalogue meant when the job was accepted. Written by the engine, whatever a request says."""

    project: str
    """Of the entry; empty: it is the whole cluster's."""
    path: str


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, or (without a path) a name of the catalogue."""

    name: str = ""
    path: str = ""
    found: Found | None = None
    """None with a path of its own, and before the engine has looked."""

    @property
    def folder(self) -> str:
        """Where it is; empty: not known yet."""
        return self.path or (self.found.path if self.found is not None else "")


class Algorithm(Reference, frozen=True, kw_only=True):
    """The folder mounted at /workspace/algorithm."""

    source: AlgorithmSource = AlgorithmSource.OWN
    read_only: bool = False

    @property
    def called(self) -> str:
        """As it is looked for: its folder, its name, or `favorite/` and its name."""
        prefix = f"{self.source}/" if self.source is AlgorithmSource.FAVORITE else ""
        return self.path or prefix + self.name


class Dataset(Reference, frozen=True, kw_only=True):
    """A folder mounted below /workspace/dataset or /workspace/anno_dataset."""

    source: DatasetSource = DatasetSource.PRIVATE
    version: str = ""
    """Of a favourite or an annotation."""
    read_only: bool = False


class Model(Reference, frozen=True, kw_only=True):
    """A folder mounted read-only below /workspace/model."""

    source: ModelSource = ModelSource.PRIVATE
    version: str = ""
    """Of a favourite."""


class Volume(Reference, frozen=True, kw_only=True):
    """A writable folder mounted at /workspace/volume/<name>."""
