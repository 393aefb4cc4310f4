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
    # `Path` has normalised it: no slash at its end.
    return posixpath.basename(str(given.get("path", "")))


_READ_ONLY = Field("read_only", Flag(), "The job cannot write into it.")
_VERSION = Field("version", _NAME, "The version, if the entry has versions.")
_PATH = Field("path", Path(), "Its folder, if it is not in the catalogue.")

_EITHER = ("path", "name")

ALGORITHM = Table(
    Algorithm,
    [
        _PATH,
        Field("name", _NAME, "Its name in the catalogue, instead of a path."),
        Field("source", Choice(AlgorithmSource), "The part of the catalogue: own or favorite."),
        _READ_ONLY,
    ],
    short="path",
    either=_EITHER,
)

DATASET = Table(
    Dataset,
    [
        Field(
            "name",
            _NAME,
            "Its name in the catalogue and its folder's name in the job; for a path, by default its last part.",
            derive=_last_part,
        ),
        _PATH,
        Field("source", Choice(DatasetSource), "The part of the catalogue: private, favorite or annotation."),
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
            "name",
            _NAME,
            "Its name in the catalogue and its folder's name in the job; for a path, by default its last part.",
            derive=_last_part,
        ),
        _PATH,
        Field("source", Choice(ModelSource), "The part of the catalogue: private, pretrained or favorite."),
        _VERSION,
    ],
    short="name",
    either=_EITHER,
)

VOLUME = Table(
    Volume,
    [
        Field("path", Path(), "Its folder; by default the catalogue's for its name."),
        Field(
            "name",
            _NAME,
            "Its folder under /workspace/volume, and its name in the catalogue; by default the path's last part.",
            derive=_last_part,
        ),
    ],
    short="path",
    either=_EITHER,
)


TASK = Table(
    Task,
    [
        Field(
            "command",
            Text(minLength=1, maxLength=COMMAND_BYTES),
            "Give the executable and its arguments.",
            required=True,
        ),
        Field("algorithm", ALGORITHM, "The folder that the task sees as /workspace/algorithm."),
    ],
)
