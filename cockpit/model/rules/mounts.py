"""Rules for the mounts of a job spec. Errors are paths and clauses, as everywhere in `rules`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cockpit.model.mounts import VERSIONED, DatasetSource
from cockpit.model.names import name_error
from cockpit.model.rules.text import count_error, path_error
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.model.mounts import Dataset, Model, Reference
    from cockpit.model.spec import JobSpec

MOST_MOUNTS = 64
"""The largest number of mounts of each kind."""


def mount_checks(spec: JobSpec) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong with each mount."""
    if spec.algorithm is not None:
        yield from reference_checks("algorithm", spec.algorithm)
    for field, given in _versioned_references(spec):
        yield field, count_error(len(given), MOST_MOUNTS)
        for index, each in enumerate(given[:MOST_MOUNTS]):
            yield from _named_checks(f"{field}[{index}]", each)
            yield f"{field}[{index}].version", _version_error(each)
    yield "volumes", count_error(len(spec.volumes), MOST_MOUNTS)
    for index, volume in enumerate(spec.volumes[:MOST_MOUNTS]):
        yield from _named_checks(f"volumes[{index}]", volume)


def mount_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Return mounts that would share a folder in the job."""
    for field, algorithm in spec.algorithms():
        if algorithm.path and algorithm.name:
            yield f"{field}.name", "cannot be used with path: one is in the catalogue, the other a folder; keep one"
    places = {field: [_place(each) for each in given] for field, given in _versioned_references(spec)}
    places["volumes"] = [each.name for each in spec.volumes]
    for field, names in places.items():
        for name in (name for name, count in Counter(names).items() if count > 1):
            yield field, f'the name "{visible(name)}" is there twice; each may be there once'


def _versioned_references(spec: JobSpec) -> tuple[tuple[str, Sequence[Dataset | Model]], ...]:
    return ("datasets", spec.datasets), ("models", spec.models)


def _place(each: Dataset | Model) -> str:
    """Return the place of a mount below its kind's folder; that of an annotation does not depend on its version."""
    version = "" if each.source is DatasetSource.ANNOTATION else each.version
    return "/".join(filter(None, (each.source, each.name, version)))


def reference_checks(at: str, given: Reference) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong with a mount whose place in the job does not depend on its name."""
    if given.path:
        yield f"{at}.path", path_error(given.path)
    elif given.name:
        yield f"{at}.name", name_error(given.name)
    else:
        yield at, "says neither path (a folder) nor name (of the catalogue); write one of them"


def _named_checks(at: str, given: Reference) -> Iterator[tuple[str, str | None]]:
    """Yield the errors of a reference.

    A folder has a name, too: that of its place in the job.
    """
    yield f"{at}.name", name_error(given.name)
    if given.path:
        yield f"{at}.path", path_error(given.path)


def _version_error(given: Dataset | Model) -> str | None:
    if given.source not in VERSIONED:
        return f"is none of a {given.source} one's; remove it, or name another source" if given.version else None
    return name_error(given.version) if given.version else f"is missing: a {given.source} one has versions; name one"
