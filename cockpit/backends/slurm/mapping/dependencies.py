"""`afterok:47(unfulfilled),afterany:5_*(failed)?singleton` as conditions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from cockpit.model.ids import JobId
from cockpit.model.spec import Dependency, DependencyKind

_TARGET = re.compile(r"(\d+)(?:_(\d+|\*))?(?:\+\d+)?(?:\((\w+)\))?")
_KINDS = {
    "after": DependencyKind.AFTER_ANY,
    "afterburstbuffer": DependencyKind.AFTER_ANY,
    **{str(kind): kind for kind in DependencyKind},
}


class Conditions(NamedTuple):
    """The dependencies of a job."""

    open: tuple[Dependency, ...] = ()
    """Dependencies that are not met yet."""
    failed: tuple[Dependency, ...] = ()
    """Dependencies that can never be met."""


@lru_cache(maxsize=4096)
def conditions(printed: str) -> Conditions:
    """Return the dependencies that squeue still lists; it leaves out those that are met."""
    waiting: list[Dependency] = []
    failed: list[Dependency] = []
    for part in re.split(r"[,?](?=[a-z])", printed):
        word, _, targets = part.partition(":")
        kind = _KINDS.get(re.sub(r"\(.*", "", word))
        if kind is None:
            continue
        if kind is DependencyKind.SINGLETON:
            waiting.append(Dependency(kind))
        for match in _TARGET.finditer(targets):
            task = int(match[2]) if match[2] and match[2] != "*" else None
            (failed if match[3] == "failed" else waiting).append(Dependency(kind, JobId(int(match[1])), task))
    return Conditions(tuple(waiting), tuple(failed))
