"""The parts of a fleet's job, one for each cluster that it is bound to; translates ids and names between the fleet and
its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.fleet import FleetPart, member_of, node_in, node_there
from cockpit.model.ids import NodeName, ReplicaId
from cockpit.model.job import Job
from cockpit.model.rules.bounds import TIME_LIMIT_SECONDS, WINDOW_SECONDS
from cockpit.model.spec import JobSpec, PriorityWord, Suspension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.machine import Machine
    from cockpit.model.node import Allocation, Placement

LATER_SECONDS = 60
"""Seconds by which the time limit of a part exceeds that of its job: the fleet ends the job first, and records why."""


def parts_of(job: Job) -> dict[str, FleetPart]:
    """Return the parts of a job by member, in the order of their first replicas."""
    attempt = job.attempt
    assert attempt is not None
    ranks: dict[str, list[int]] = {}
    for rank, member in enumerate(attempt.members):
        ranks.setdefault(member, []).append(rank)
    return {
        member: FleetPart(job.id, attempt.number, tuple(own), _reserved([attempt.placement[rank] for rank in own]))
        for member, own in ranks.items()
    }


def spec_of(job: Job, member: str, part: FleetPart) -> JobSpec:
    """Return the spec that is submitted to the member. It leaves out what the fleet has decided already."""
    attempt, spec = job.attempt, job.spec
    assert attempt is not None
    # Nodes that the fleet has reserved bind the member; else the member chooses among those that the job names there.
    wished = [NodeName(name) for name in spec.node_names or spec.pool_nodes]
    pinned = tuple(each.node for each in part.reserved) or tuple(
        node_there(name) for name in wished if member_of(name) == member
    )
    return replace(
        _with_folders(spec),
        name=spec.name if job.array is None else f"{spec.name}-{job.array.index}",
        nodes=len(part.ranks),
        specs=(replace(spec.specs[attempt.spec_index], name=""),),
        node_names=pinned,
        # A pin excludes both (JT-10).
        pool=None if pinned else spec.pool,
        driver_version=None if pinned else spec.driver_version,
        # rules that the fleet has applied already; the member would apply its own to them
        partitions=(),
        account=None,
        qos=None,
        priority=PriorityWord.NORMAL,
        nice=0,
        project=job.project,
        hold=False,
        begin_at=None,
        deadline_at=None,
        dependencies=(),
        array=None,
        # The fleet decides about a retry, which may be in another cluster.
        restart=None,
        reservation="",
        suspension=Suspension(),
        divide_over_clusters=False,
        # the fleet ends the job and its hold, and records why: the member's own limits come later
        time_limit_seconds=min(TIME_LIMIT_SECONDS.high, spec.time_limit_seconds + LATER_SECONDS),
        debug_hold=replace(spec.debug_hold, window_seconds=WINDOW_SECONDS.high),
    )


def _with_folders(spec: JobSpec) -> JobSpec:
    """Return the spec with the folders that the names in the fleet's catalogue mean, since a member has another
    catalogue."""
    algorithm = spec.algorithm
    return replace(
        spec,
        algorithm=replace(algorithm, name="", path=algorithm.folder, found=None) if algorithm is not None else None,
        datasets=tuple(replace(each, path=each.folder, found=None) for each in spec.datasets),
        models=tuple(replace(each, path=each.folder, found=None) for each in spec.models),
        volumes=tuple(replace(each, path=each.folder, found=None) for each in spec.volumes),
        image=spec.root_image,
        image_found="",
        pool_nodes=(),
    )


def job_of(member: Machine, job: Job, part: FleetPart) -> Job | None:
    """Return the member's job that is this part, the last one where there were several."""
    # From the end: a part is younger than most jobs of its member.
    mine = (each for each in reversed(member.state.jobs.values()) if each.part is not None)
    return next((each for each in mine if each.part and _key(each.part) == (job.id, part.attempt)), None)


def replica_there(fleet: Machine, members: Mapping[str, Machine], replica: ReplicaId) -> tuple[str, ReplicaId] | None:
    """Return the member that has a replica of the fleet, and its own name for it; None: none has it, or not yet."""
    job = fleet.state.jobs.get(replica.job)
    if job is None or job.attempt is None or job.attempt.number != replica.attempt:
        return None
    for name, part in parts_of(job).items():
        part_job = job_of(members[name], job, part) if name in members else None
        if replica.rank in part.ranks and part_job is not None and part_job.attempt is not None:
            return name, ReplicaId(part_job.id, part_job.attempt.number, part.ranks.index(replica.rank))
    return None


def seen_from_fleet(member: str, part: FleetPart, placement: Placement) -> Placement:
    """Return a member's placement with the ranks and nodes that the fleet knows."""
    return tuple(replace(each, rank=part.ranks[each.rank], node=node_in(member, each.node)) for each in placement)


def _key(part: FleetPart) -> tuple[int, int]:
    return part.job, part.attempt


def _reserved(allocations: list[Allocation]) -> Placement:
    """Return the reserved nodes by their names at the member; empty where the fleet knows no nodes."""
    if any(member_of(each.node) == each.node for each in allocations):
        return ()
    return tuple(replace(each, rank=rank, node=node_there(each.node)) for rank, each in enumerate(allocations))
