"""Translates the paths of cockpit's containers into those on a cluster without containers."""

from __future__ import annotations

import re

from cockpit.launch.workspace import ALGORITHM, OUTPUTS, WORKSPACE
from cockpit.model.spec import JobSpec

_PLAIN = re.compile(r"[\w./+@%-]+")
"""A path that is the same within every kind of quotes."""


def on_nodes(spec: JobSpec, command: str) -> str:
    """The command with the paths that its algorithm and its output have there."""
    places = {ALGORITHM: spec.algorithm.path if spec.algorithm is not None else "", OUTPUTS: spec.output}
    for place, path in places.items():
        if _PLAIN.fullmatch(path):
            command = path.rstrip("/").join(_names(place).split(command))
    return command


def is_in_workspace(command: str) -> bool:
    """Return whether the command still names a path of cockpit's containers."""
    return _names(WORKSPACE).search(command) is not None


def _names(place: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])")
