"""The fields of what a job mounts, and of a batch's task, which has mounts of its own.

A job mounts an algorithm, datasets, models and volumes: each a path, or a name of the catalogue.
"""

from __future__ import annotations

import posixpath
from typing import Any

from cockpit.formats.kinds import Choice, Flag, Path, Text
from cockpit.formats.tables import Field, Table
from cockpit.model.mounts import Algorithm, AlgorithmSource, Dataset, DatasetSource, Model, ModelSource, Volume
from cockpit.model.names import NAME_LENGTH, NAME_PATTERN
from cockpit.model.rules.text import COMMAND_BYTES
from cockpit.model.spec import Task

_NAME = Text(minLength=1, maxLength=NAME_LENGTH, pattern=NAME_PATTERN)


def _last_part(given: dict[str, Any]) -> str:
    """Return the last part of a path; empty where none is given."""
    return posixpath.basename(str(given.get("path", "")))


_READ_ONLY = Field(name="read_only", attribute="read_only", kind=Flag(), about="The job cannot write into it.")
_VERSION = Field(name="version", attribute="version", kind=_NAME, about="The version, if the entry has versions.")
_PATH = Field(name="path", attribute="path", kind=Path(), about="Its folder, if it is not in the catalogue.")

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
            about="The part of the catalogue: own or favorite.",
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
            about="Its name in the catalogue and its folder's name in the job; for a path, by default its last part.",
        ),
        _PATH,
        Field(
            name="source",
            attribute="source",
            kind=Choice(DatasetSource),
            about="The part of the catalogue: private, favorite or annotation.",
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
            about="Its name in the catalogue and its folder's name in the job; for a path, by default its last part.",
        ),
        _PATH,
        Field(
            name="source",
            attribute="source",
            kind=Choice(ModelSource),
            about="The part of the catalogue: private, pretrained or favorite.",
        ),
        _VERSION,
    ],
    short="name",
    either=_EITHER,
)

VOLUME = Table(
    Volume,
    [
        Field(name="path", attribute="path", kind=Path(), about="Its folder; by default the catalogue's for its name."),
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


TASK = Table(
    Task,
    [
        Field(
            name="command",
            attribute="command",
            kind=Text(minLength=1, maxLength=COMMAND_BYTES),
            required=True,
            about="Give the executable and its arguments.",
        ),
        Field(
            name="algorithm",
            attribute="algorithm",
            kind=ALGORITHM,
            about="The folder that the task sees as /workspace/algorithm.",
        ),
    ],
)
