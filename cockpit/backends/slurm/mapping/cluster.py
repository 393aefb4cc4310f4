"""Builds the state of the embedded scheduler from everything that was read of a Slurm cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.accounts import ShareLine, usage
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.licences import Licence, LicenceQueue
from cockpit.backends.slurm.mapping.memory import ANY_MEMORY, MemoryRules, with_memory, without_memory
from cockpit.backends.slurm.mapping.nodes import SlurmNode
from cockpit.backends.slurm.mapping.placements import NOTHING_KNOWN, Known, UnattributedGpus, place_jobs
from cockpit.backends.slurm.mapping.spreads import NO_SPREADS, Spreads, spread_spec
from cockpit.engine.state import ClusterState
from cockpit.model.accounts import Accounts, assoc_key
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, task_of
from cockpit.model.job import Job, JobState
from cockpit.model.spec import JobSpec

NEVER = "a dependency that never comes true"
"""`held_by` of jobs that can never start: the scheduler passes over them as over held jobs."""
NO_LICENCES = "licences that other jobs have"
"""`held_by` of jobs that there are no licences for. Slurm passes over them, too, and no end of a job is known to give
them enough."""
PLANNED_TASKS = 1000
"""Most pending tasks of one array that are planned: more than Slurm's own backfill looks at."""
NO_FACTORS: Mapping[int, int] = {}


class ClusterLists(NamedTuple):
    """Lists of a cluster, each as old as the poll intervals allow."""

    at: Millis
    rules: Cluster
    nodes: tuple[SlurmNode, ...]
    jobs: tuple[Listed, ...]
    accounts: Accounts = Accounts()
    shares: tuple[ShareLine, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    details: Known = NOTHING_KNOWN
    spreads: Spreads = NO_SPREADS
    """Tasks of pending jobs whose tasks are spread over nodes, by Slurm's number of the job."""
    memory: MemoryRules = ANY_MEMORY
    licences: tuple[Licence, ...] = ()
    """Known only if a pending job wants some."""
    counted_at: Millis | None = None
    """When the cluster last computed ages and usage; None: at `at`."""
    site_factors: Mapping[int, int] = NO_FACTORS
    """Site factors of priorities, by Slurm's id of the job or array; an absent one is 0."""

    @property
    def size(self) -> int:
        """The number of records of jobs."""
        return len(self.jobs)


def state(everything: ClusterLists, *, as_ranked: bool) -> ClusterState:
    """Return the scheduler's state of the cluster.

    `as_ranked`: pending jobs keep the priorities that Slurm gave them; False: the scheduler computes them.

    1. Convert each record of squeue into jobs; a record of pending array tasks becomes one job for each task.
    2. Give tasks that are spread over nodes, and jobs that name no memory, the spec that `scontrol -d show job`
       describes.
    3. Join the components of a queued heterogeneous job into its first one, since they start together. A job that there
       are no licences for is passed over.
    4. Place running jobs on their nodes and cards. Cards in use that belong to no known job count as used by others.
    """
    nodes = {each.node.name: each.node for each in everything.nodes}
    ranks: dict[JobId, int | None] = {}
    listed: list[Job] = []
    # Only for plans: priorities are computed for each record of squeue by itself.
    joined = components(everything.jobs) if as_ranked else {}
    inner = {each.id for others in joined.values() for each in others}
    enough = LicenceQueue(everything.licences, everything.jobs).enough if as_ranked else {}
    for each in everything.jobs:
        # It is part of its first component's job (step 3).
        if each.id in inner:
            continue
        tasks = list(each.each(PLANNED_TASKS if as_ranked else None))  # step 1
        # Step 2. Not when priorities are computed: Slurm computes them from the nodes of its last plan, as in squeue.
        if as_ranked and each.waits and (spec := planned_spec(everything, each)) is not each.job.spec:
            # The spec was made from the record; each task has an array of its own.
            tasks = [replace(job, spec=replace(spec, array=job.spec.array)) for job in tasks]
        rank = each.priority if as_ranked else None
        others = joined.get(each.id, ())
        if others:  # step 3
            tasks = [_join_components(tasks[0], others, everything)]
            # all of them wait for the one whose turn comes last
            rank = min(one.priority or 0 for one in (each, *others))
        fitting = min((enough.get(one.id, len(tasks)) for one in (each, *others)), default=len(tasks))
        listed += [*tasks[:fitting], *(_without_licences(job) for job in tasks[fitting:])]
        ranks |= dict.fromkeys((job.id for job in tasks), rank)
    unattributed = UnattributedGpus(everything.nodes, everything.details)
    with_factors = _with_site_factors(_copy_array_limits(listed), everything.site_factors)
    jobs = place_jobs(with_factors, nodes, everything.details, unattributed)  # step 4
    if not everything.memory.is_allocated:
        jobs = [without_memory(job) for job in jobs]
    counted_at = everything.counted_at or everything.at
    return ClusterState(
        seq=1,
        at=everything.at,
        last_job_id=max((each.id for each in listed), default=0),
        nodes=nodes,
        jobs=dict(sorted((job.id, _with_rank(job, ranks)) for job in jobs)),
        cluster=everything.rules,
        # Without root it is only a part of the tree, or there is no accounting: no limits are better than wrong ones.
        accounts=everything.accounts if assoc_key("root") in everything.accounts.associations else Accounts(),
        reservations={each.name: each for each in everything.reservations},
        # Without details the cards of jobs are guesses, so what is left over says nothing about other jobs.
        others=unattributed.others() if everything.details else {},
        usage=usage(everything.shares),
        usage_at=counted_at,
        usage_reset_at=counted_at,
    )


def components(jobs: Iterable[Listed]) -> dict[JobId, tuple[Listed, ...]]:
    """Return the further components of each heterogeneous job that waits, by the id of its first component."""
    groups: dict[int, dict[int, Listed]] = {}
    for each in jobs:
        if each.waits and each.component is not None:
            groups.setdefault(each.component[0], {})[each.component[1]] = each
    # Without its first component, which may just have started, there is nothing to join to.
    whole = [[group[number] for number in sorted(group)] for group in groups.values() if 0 in group and len(group) > 1]
    return {first.id: tuple(others) for first, *others in whole}


def _join_components(first: Job, others: tuple[Listed, ...], everything: ClusterLists) -> Job:
    """Return the first component with all others in its spec. What keeps one from starting keeps all of them."""
    specs = [planned_spec(everything, each) for each in others]
    jobs = [first, *(each.job for each in others)]
    spec = replace(
        first.spec,
        components=tuple(specs),
        time_limit_seconds=max(each.spec.time_limit_seconds for each in jobs),
        begin_at=max((each.spec.begin_at for each in jobs if each.spec.begin_at is not None), default=None),
    )
    # Slurm starts either all components or none (heterogeneous_jobs.html).
    held_by = next((each.held_by for each in jobs if each.held_by), "")
    never = next((each.never for each in jobs if each.never is not None), None)
    return replace(first, spec=spec, held_by=held_by, never=never)


def spec_shared_out(everything: ClusterLists, listed: Listed) -> JobSpec | None:
    """Return the spec of a pending job whose tasks are spread over its nodes; None for others or if it is unknown."""
    tasks = everything.spreads.get(listed.fields["JobID"]) if listed.waits else None
    return spread_spec(listed.job.spec, listed.fields, tasks, listed.shards) if tasks is not None else None


def _without_licences(job: Job) -> Job:
    return job if job.held_by else replace(job, held_by=NO_LICENCES)


def planned_spec(everything: ClusterLists, listed: Listed) -> JobSpec:
    """Return the spec by which a pending job is planned: its tasks spread, and the memory that it gets if it names
    none."""
    spec = spec_shared_out(everything, listed) or listed.job.spec
    return with_memory(spec, everything.spreads.get(listed.fields["JobID"]), everything)


def _copy_array_limits(jobs: list[Job]) -> Iterator[Job]:
    """Copy an array's limit of concurrent tasks (`%4`) from its pending record, which alone has it, to all tasks."""
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
    # sprio prints one line for all pending tasks, under the array's number.
    pairs = ((job, factors.get(job.id) or factors.get(task_of(job.id)[0], 0)) for job in jobs)
    return (replace(job, site_factor=factor) if factor else job for job, factor in pairs)


def _with_rank(job: Job, ranks: Mapping[JobId, int | None]) -> Job:
    """Return the job with Slurm's priority; a job that can never start is marked as held."""
    if job.never is not None:
        return replace(job, never=None, waits_for=(), held_by=NEVER)
    rank = ranks.get(job.id)
    # A priority of 0 is how Slurm stores a hold.
    if job.state is not JobState.QUEUED or job.held_by or not rank:
        return job
    return replace(job, direct_priority=rank)


def shards_per_card(nodes: Iterable[SlurmNode]) -> int:
    """Return the largest number of shards per card of all nodes; 0: no card is divided."""
    return max((each.gres.shards_per_card for each in nodes), default=0)
