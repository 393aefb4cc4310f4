"""Everything that was read of a cluster, put together as the state that the embedded core works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.accounts import Shared, usage
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.nodes import Seen
from cockpit.backends.slurm.mapping.placements import placed
from cockpit.backends.slurm.mapping.spreads import NO_SPREADS, Spreads, spread_spec
from cockpit.backends.slurm.mapping.unattributed_gpus import NOTHING_KNOWN, Known, UnattributedGpus
from cockpit.engine.state import ClusterState
from cockpit.model.accounts import Accounts, assoc_key
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, task_of
from cockpit.model.job import Job, JobState
from cockpit.model.spec import JobSpec

NEVER = "a dependency that never comes true"
"""Whose job never starts is held back by it: to the core it is as if it were not there."""
PLANNED_TASKS = 1000
"""Of the tasks of an array that wait and are alike so many are planned: more than Slurm's own backfill looks at."""
NO_FACTORS: Mapping[int, int] = {}


class Everything(NamedTuple):
    """What was read, each part as old as the manners allow."""

    at: Millis
    rules: Cluster
    nodes: tuple[Seen, ...]
    jobs: tuple[Listed, ...]
    accounts: Accounts = Accounts()
    shares: tuple[Shared, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    details: Known = NOTHING_KNOWN
    spreads: Spreads = NO_SPREADS
    """Tasks of waiting jobs, where it is to be planned on which nodes they go."""
    counted_at: Millis | None = None
    """When the cluster last counted ages and usage; None: just now."""
    site_factors: Mapping[int, int] = NO_FACTORS
    """By Slurm's id of the job or array; 0 where it is absent."""


def state(everything: Everything, *, as_ranked: bool) -> ClusterState:
    """`as_ranked`: waiting jobs keep the priorities that the cluster gave them, instead of being counted anew."""
    nodes = {each.node.name: each.node for each in everything.nodes}
    ranks: dict[JobId, int | None] = {}
    listed: list[Job] = []
    for each in everything.jobs:
        tasks = list(each.each(PLANNED_TASKS if as_ranked else None))
        if as_ranked and (spec := spec_shared_out(everything, each)) is not None:  # Slurm counts priorities by its plan
            tasks = [replace(job, spec=replace(spec, array=job.spec.array)) for job in tasks]
        listed += tasks
        ranks |= dict.fromkeys((job.id for job in tasks), each.priority if as_ranked else None)
    untold = UnattributedGpus(everything.nodes, everything.details)
    named = _with_site_factors(_bounded(listed), everything.site_factors)
    jobs = placed(named, nodes, everything.details, untold)
    counted_at = everything.counted_at or everything.at
    return ClusterState(
        seq=1,
        at=everything.at,
        last_job_id=max((each.id for each in listed), default=0),
        nodes=nodes,
        jobs=dict(sorted((job.id, _ranked(job, ranks)) for job in jobs)),
        cluster=everything.rules,
        accounts=everything.accounts if assoc_key("root") in everything.accounts.associations else Accounts(),
        reservations={each.name: each for each in everything.reservations},
        others=untold.others() if everything.details else {},
        usage=usage(everything.shares),
        usage_at=counted_at,
        usage_reset_at=counted_at,
    )


def spec_shared_out(everything: Everything, listed: Listed) -> JobSpec | None:
    """Return the spec of a waiting job whose tasks share out over its nodes; None for any other, and where nobody told
    how they do."""
    tasks = everything.spreads.get(listed.fields["JobID"]) if listed.waits else None
    return spread_spec(listed.job.spec, listed.fields, tasks, listed.shards) if tasks is not None else None


def _bounded(jobs: list[Job]) -> Iterator[Job]:
    """How many tasks of an array may run at once is told of those that wait alone; it bounds those that run."""
    at_once = {each.array.array: each.array.at_once for each in jobs if each.array is not None and each.array.at_once}
    for each in jobs:
        array = each.array
        if array is None or array.at_once or array.array not in at_once:
            yield each
        else:
            yield replace(each, array=replace(array, at_once=at_once[array.array]))


def _with_site_factors(jobs: Iterable[Job], factors: Mapping[int, int]) -> Iterable[Job]:
    if not factors:
        return jobs
    found = ((job, factors.get(job.id) or factors.get(task_of(job.id)[0], 0)) for job in jobs)
    return (replace(job, site_factor=factor) if factor else job for job, factor in found)


def _ranked(job: Job, ranks: Mapping[JobId, int | None]) -> Job:
    if job.never is not None:
        return replace(job, never=None, waits_for=(), held_by=NEVER)
    rank = ranks.get(job.id)
    if job.state is not JobState.QUEUED or job.held_by or not rank:
        return job
    return replace(job, direct_priority=rank)


def shards_per_card(nodes: Iterable[Seen]) -> int:
    """The most of any node; 0: nothing is cut."""
    return max((each.gres.shards_per_card for each in nodes), default=0)
