"""Converts a job into a session with the same surroundings, and a session into a training job."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.names import NAME_LENGTH
from cockpit.model.spec import Hooks, JobKind, JobSpec, PriorityWord

MARK = "-dev"
"""The end of the name of a session that was made from a job."""


def development(spec: JobSpec) -> JobSpec:
    """Return a session of one node with the job's folders, environment, resources and place in the organisation;
    without the fields that say when and how often the job starts, and what runs around its command."""
    return replace(
        _without_waiting(spec),
        # Cut, since the mark must fit into the longest name.
        name=spec.name[: NAME_LENGTH - len(MARK)] + MARK,
        kind=JobKind.INTERACTIVE,
        command="",
        algorithm=spec.algorithm or next((given for _, given in spec.algorithms()), None),
        nodes=1,
        priority=PriorityWord.NORMAL,
    )


def training(spec: JobSpec, command: str = "") -> JobSpec:
    """Return a job that runs this command where the session is; an empty command is still to be written."""
    name = spec.name.removesuffix(MARK)
    # A session may be called just like the mark.
    return replace(_without_waiting(spec), name=name or spec.name, kind=JobKind.REGULAR, command=command)


def _without_waiting(spec: JobSpec) -> JobSpec:
    """Return the spec without what would delay its start or repeat it."""
    return replace(
        spec,
        tasks=(),
        array=None,
        sweep=None,
        script=None,
        worker_pools=(),
        parameter_servers=0,
        dependencies=(),
        begin_at=None,
        deadline_at=None,
        hold=False,
        elastic=None,
        restart=None,
        resume=None,
        hooks=Hooks(),
        staging=False,
        mode=None,
        divide_over_clusters=False,
    )
