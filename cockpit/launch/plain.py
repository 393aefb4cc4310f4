"""Lists the fields of a job that need a container, for machines that do not let their engine create containers."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.model.image import HOST
from cockpit.model.spec import JobSpec


def needs_container(spec: JobSpec) -> list[str]:
    """Return the fields because of which the job needs a container, each with the reason and what to do."""
    return list(_needs(spec))


def _needs(spec: JobSpec) -> Iterator[str]:
    if spec.root_image != HOST:
        yield "image: plain processes have no other root than this machine's; leave it out"
    if spec.staging:
        yield "staging: plain processes could write into a copy that others use; leave it out"
    if spec.most_nodes > 1:
        yield (
            "nodes: several replicas need a network of their own, which plain processes do not have; write nodes: 1 "
            "and have one command start all processes"
        )
