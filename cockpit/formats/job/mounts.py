"""The fields of what a job mounts: algorithm, datasets, models, volumes; each a path, or a name of the catalogue."""

from __future__ import annotations

import posixpath
from typing import Any

from cockpit.formats.kinds import Choice, Flag, Path, Text
from cockpit.formats.tables import Field, Table
from cockpit.model.mounts import (
    Algorithm,
    AlgorithmSource,
    Dataset,
    DatasetSource,
    Model,
    ModelSource,
    Volume,
)
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN

_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)


def _last_part(given: dict[str, Any]) -> str:
    """Return the last part of a path; empty where none is given."""
    return posixpath.basename(str(given.get("path", "")))


_READ_ONLY = Field(name="read_only", attribute="read_only", kind=Flag(), about="The job cannot write into it.")
_VERSION = Field(name="version", attribute="version", kind=_NAME, about="Of one that has versions, which.")
_PATH = Field(name="path", attribute="path", kind=Path(), about="Its folder, where it is none of the catalogue.")

_EITHER = ("path", "name")

ALGORITHM = Table(
    Algorithm,
    [
        _PATH,
        Field(name="name", attribute="name", kind=_NAME, about="Its name in the catalogue, instead of a path."),
        Field(
            name="source",
            attribute="source",
            kind=Choice(AlgorithmSource),
            about="Where in the catalogue: own or favorite.",
        ),
        _READ_ONLY,
    ],
    short="path",
    either=_EITHER,
)

DATASET = Table(
    Dataset,
    [
        Field(
            name="name",
            attribute="name",
            kind=_NAME,
            derive=_last_part,
            about="Its name in the catalogue, and its folder's in the job; of a path by default the last part.",
        ),
        _PATH,
        Field(
            name="source",
            attribute="source",
            kind=Choice(DatasetSource),
            about="Where in the catalogue: private, favorite or annotation.",
        ),
        _VERSION,
        _READ_ONLY,
    ],
    short="name",
    either=_EITHER,
)

MODEL = Table(
    Model,
    [
        Field(
            name="name",
            attribute="name",
            kind=_NAME,
            derive=_last_part,
            about="Its name in the catalogue, and its folder's in the job; of a path by default the last part.",
        ),
        _PATH,
        Field(
            name="source",
            attribute="source",
            kind=Choice(ModelSource),
            about="Where in the catalogue: private, pretrained or favorite.",
        ),
        _VERSION,
    ],
    short="name",
    either=_EITHER,
)

VOLUME = Table(
    Volume,
    [
        Field(name="path", attribute="path", kind=Path(), about="Its folder; without it the catalogue's of its name."),
        Field(
            name="name",
            attribute="name",
            kind=_NAME,
            derive=_last_part,
            about="Its folder under /workspace/volume, and its name in the catalogue; by default the path's last part.",
        ),
    ],
    short="path",
    either=_EITHER,
)
