"""The folders from outside that a job mounts: algorithm, datasets, models, volumes, each by path or name."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AlgorithmSource(StrEnum):
    """The part of the catalogue that an algorithm is in."""

    OWN = "own"
    FAVORITE = "favorite"


class DatasetSource(StrEnum):
    """The part of the catalogue that a dataset is in, which decides where it is mounted."""

    PRIVATE = "private"
    FAVORITE = "favorite"
    """A version of a favourite."""
    ANNOTATION = "annotation"
    """The annotations of one of its versions."""


class ModelSource(StrEnum):
    """The part of the catalogue that a model is in, which decides where it is mounted."""

    PRIVATE = "private"
    PRETRAINED = "pretrained"
    FAVORITE = "favorite"
    """A version of a favourite."""


VERSIONED = frozenset({DatasetSource.FAVORITE, DatasetSource.ANNOTATION, ModelSource.FAVORITE})
"""Sources of which a version is meant."""


class ResolvedEntry(msgspec.Struct, frozen=True):
    """The catalogue entry that a name meant when the job was accepted. Only the engine sets it."""

    project: str
    """The project of the entry; empty: it belongs to the whole cluster."""
    path: str


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, or (without a path) a name of the catalogue."""

    name: str = ""
    path: str = ""
    # Stored with the job: a later change of the catalogue must not move what a queued job mounts.
    found: ResolvedEntry | None = None
    """The catalogue entry; None where a path is given, and before the engine has looked the name up."""

    @property
    def folder(self) -> str:
        """Return the folder on the node; empty: not known yet."""
        return self.path or (self.found.path if self.found is not None else "")


class Algorithm(Reference, frozen=True, kw_only=True):
    """The folder mounted at /workspace/algorithm."""

    source: AlgorithmSource = AlgorithmSource.OWN
    read_only: bool = False

    @property
    def called(self) -> str:
        """Return the text by which jobs are searched: the folder, the name, or `favorite/` and the name."""
        prefix = f"{self.source}/" if self.source is AlgorithmSource.FAVORITE else ""
        return self.path or prefix + self.name


class Dataset(Reference, frozen=True, kw_only=True):
    """A folder mounted below /workspace/dataset or /workspace/anno_dataset."""

    source: DatasetSource = DatasetSource.PRIVATE
    version: str = ""
    """The version of a favourite or an annotation."""
    read_only: bool = False


class Model(Reference, frozen=True, kw_only=True):
    """A folder mounted read-only below /workspace/model."""

    source: ModelSource = ModelSource.PRIVATE
    version: str = ""
    """The version of a favourite."""


class Volume(Reference, frozen=True, kw_only=True):
    """A writable folder mounted at /workspace/volume/<name>."""
