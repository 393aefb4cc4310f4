"""Converts a job into a session with the same surroundings, and a session into a training job."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.names import NAME_LENGTH
from cockpit.model.spec import Hooks, JobKind, JobSpec, PriorityWord

MARK = "-dev"
"""Behind the name of a session that was made from a job."""


def development(spec: JobSpec) -> JobSpec:
    """A session of one node with the job's folders, environment, room and place in the organisation. What says when and
    how often the job starts, and what runs around its command, is not the session's."""
    return replace(
        _begun_now(spec),
        name=spec.name[: NAME_LENGTH - len(MARK)] + MARK,
        kind=JobKind.INTERACTIVE,
        command="",
        algorithm=spec.algorithm or next((given for _, given in spec.algorithms()), None),
        nodes=1,
        priority=PriorityWord.NORMAL,
    )


def training(spec: JobSpec, command: str = "") -> JobSpec:
    """A job that runs this command where the session is; empty: it is still to be given."""
    name = spec.name.removesuffix(MARK)
    return replace(_begun_now(spec), name=name or spec.name, kind=JobKind.REGULAR, command=command)


def _begun_now(spec: JobSpec) -> JobSpec:
    """Free to start, once and as it is."""
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
