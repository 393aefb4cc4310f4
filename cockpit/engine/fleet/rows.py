"""Builds the rows of an embedded fleet's table from the fleet's own state and those of its members."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cockpit.engine.fleet.parts import parts_of
from cockpit.launch.world import host_of
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow, FleetShown
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import Replica
    from cockpit.model.fleetorder import PartSeen
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job


class Link(NamedTuple):
    """What is known of a member over a link."""

    seen: Mapping[str, PartSeen]
    """The parts of the last look, by the member's own ids."""
    heard_at: Millis | None
    """When it last answered; None: never."""
    silence: str
    """Why it does not answer at present, as a sentence; empty: it does."""
    refusals: Mapping[JobId, str]
    """Why it refuses the part of a job, by the fleet's job."""


class Part(NamedTuple):
    """What runs or is to run of a fleet's job on one member, and the member's own job for it."""

    cluster: str
    ranks: tuple[int, ...]
    there: Job | None
    """None: the member has none yet, or not any more."""


def fleet_shown(
    fleet: Machine,
    members: Mapping[str, Machine],
    may_see: Callable[[Job], bool],
    now: Millis,
    *,
    links: Mapping[str, Link] = MappingProxyType({}),
    only: Collection[JobId] | None = None,
    pods: bool = False,
) -> FleetShown:
    """Return the rows of the fleet's live and held jobs, then those of jobs that were submitted to members directly.

    `links`: the members over links; jobs of their own are not listed. `only`: these jobs of the fleet alone, also those
    that have ended; `pods`: the pods in place of the jobs.
    """
    jobs = [
        each
        for each in fleet.state.jobs.values()
        if (_is_listed(each) if only is None else each.id in only) and may_see(each)
    ]
    parts = _PartIndex(members)
    direct = [
        (name, each)
        for name, machine in members.items()
        for each in machine.state.jobs.values()
        if only is None and each.part is None and _is_listed(each) and may_see(each)
    ]
    if pods:
        of_fleet = (row for each in jobs for part in parts.of(each) for row in _pods(each, part, links))
        return FleetShown(pods=(*of_fleet, *(row for name, each in direct for row in pod_rows(name, each, JobId(0)))))
    rows = (row for each in jobs for row in _rows(each, parts.of(each), links, now))
    return FleetShown(jobs=(*rows, *(_direct_row(name, each, now) for name, each in direct)))


def _is_listed(job: Job) -> bool:
    return not job.ended or job.kept


class _PartIndex:
    """The members' jobs that are parts of the fleet's jobs, looked for once."""

    def __init__(self, members: Mapping[str, Machine]) -> None:
        self._jobs = {
            (name, each.part.job, each.part.attempt): each
            for name, machine in members.items()
            for each in machine.state.jobs.values()
            if each.part is not None
        }

    def of(self, job: Job) -> list[Part]:
        """Return the parts of the job's present or last attempt; none of a job that is bound to no cluster."""
        attempt = job.attempt
        # A job that was given up or waits for another try still has its last attempt, which runs nowhere.
        if attempt is None or not attempt.members or job.state is JobState.QUEUED:
            return []
        parts = parts_of(job).items()
        return [Part(name, part.ranks, self._jobs.get((name, job.id, attempt.number))) for name, part in parts]


def _rows(job: Job, parts: Sequence[Part], links: Mapping[str, Link], now: Millis) -> Iterator[FleetJobRow]:
    for each in parts:
        if each.cluster in links:
            yield _linked_row(job, each, links[each.cluster])
            continue
        there = each.there
        yield FleetJobRow(
            job=job.id,
            name=job.spec.name,
            user=job.submitter.name,
            cluster=each.cluster,
            fleet_state=str(job.shown_state),
            state=str(there.shown_state) if there is not None else "",
            created_at=there.submitted_at if there is not None else job.submitted_at,
            adopted=there is not None,
            own=str(there.id) if there is not None else "",
            replicas=len(each.ranks),
            division=_division(job),
            ready=_ready(there),
            heard_at=now,
        )
    if not parts:
        yield FleetJobRow(
            job=job.id,
            name=job.spec.name,
            user=job.submitter.name,
            cluster="",
            fleet_state=str(job.shown_state),
            state="",
            created_at=job.submitted_at,
            adopted=False,
            replicas=job.spec.nodes,
            division=_division(job),
        )


def _division(job: Job) -> str:
    return "Gang" if job.spec.divide_over_clusters else ""


def _linked_row(job: Job, part: Part, link: Link) -> FleetJobRow:
    """Return the row of a part on a member over a link, as the last look found it."""
    attempt = job.attempt
    assert attempt is not None
    remote = attempt.remote_part(part.cluster)
    seen = link.seen.get(remote.own) if remote is not None else None
    reason = link.refusals.get(job.id, "") if remote is None else seen.reason if seen is not None else ""
    return FleetJobRow(
        job=job.id,
        name=job.spec.name,
        user=job.submitter.name,
        cluster=part.cluster,
        fleet_state=str(job.shown_state),
        state=seen.word if seen is not None else "",
        created_at=attempt.placed_at,
        adopted=remote is not None,
        own=remote.own if remote is not None else "",
        order=str(seen.order) if seen is not None else "",
        replicas=len(part.ranks),
        division=_division(job),
        ready=len([each for each in attempt.replicas if each.rank in part.ranks and each.is_ready]),
        reason=reason,
        heard_at=link.heard_at,
        silence=link.silence,
    )


def _direct_row(cluster: str, job: Job, now: Millis) -> FleetJobRow:
    """Return the row of a job that was submitted to the member directly."""
    return FleetJobRow(
        job=JobId(0),
        name=job.spec.name,
        user=job.submitter.name,
        cluster=cluster,
        fleet_state="",
        state=str(job.shown_state),
        created_at=job.submitted_at,
        adopted=False,
        own=str(job.id),
        replicas=job.spec.nodes,
        ready=_ready(job),
        heard_at=now,
    )


def _pods(job: Job, part: Part, links: Mapping[str, Link]) -> Iterator[FleetPodRow]:
    if part.cluster in links:
        yield from _linked_pods(job, part, links[part.cluster])
        return
    there = {each.rank: each for each in _replicas(part.there)}
    for own_rank, rank in enumerate(part.ranks):
        yield _pod(job.id, host_of(job.spec, rank), part, there.get(own_rank), own_rank, rank)


def _linked_pods(job: Job, part: Part, link: Link) -> Iterator[FleetPodRow]:
    attempt = job.attempt
    remote = attempt.remote_part(part.cluster) if attempt is not None else None
    seen = link.seen.get(remote.own) if remote is not None else None
    if attempt is None or remote is None:
        return
    nodes = seen.nodes if seen is not None else ()
    for own_rank, rank in enumerate(part.ranks):
        replica = attempt.replicas[rank]
        yield FleetPodRow(
            job=job.id,
            name=host_of(job.spec, rank),
            cluster=part.cluster,
            ready=int(replica.is_ready),
            containers=1,
            status=_status(job, replica),
            restarts=replica.restarts,
            created_at=attempt.placed_at,
            rank=rank,
            node=nodes[own_rank] if own_rank < len(nodes) else "",
            own=remote.own,
        )


def pod_rows(cluster: str, job: Job, shown_as: JobId) -> Iterator[FleetPodRow]:
    """Yield the pods of a job that lies on one cluster. `shown_as`: its id in the table; 0: it has none."""
    part = Part(cluster, (), job)
    for each in _replicas(job):
        yield _pod(shown_as, host_of(job.spec, each.rank), part, each, each.rank, each.rank)


def _pod(job: JobId, name: str, part: Part, replica: Replica | None, own_rank: int, rank: int) -> FleetPodRow:
    there = part.there
    places = there.attempt.places if there is not None and there.attempt is not None else {}
    return FleetPodRow(
        job=job,
        name=name,
        cluster=part.cluster,
        ready=int(replica is not None and replica.is_ready),
        containers=1,
        status=_status(there, replica),
        restarts=replica.restarts if replica is not None else 0,
        created_at=there.submitted_at if there is not None else None,
        rank=rank,
        node=places[own_rank].node if own_rank in places else "",
        own=str(there.id) if there is not None else "",
    )


def _replicas(job: Job | None) -> tuple[Replica, ...]:
    return job.attempt.replicas if job is not None and job.attempt is not None else ()


def _ready(job: Job | None) -> int:
    return len([each for each in _replicas(job) if each.is_ready])


def _status(job: Job | None, replica: Replica | None) -> str:
    """Return Kubernetes' word for what the replica does."""
    if job is None:
        return "Unknown"
    if replica is None or (replica.started_at is None and replica.ended_at is None):
        return "Pending"
    if replica.ended_at is None:
        return "Running"
    return "Succeeded" if replica.exit is not None and replica.exit.ok else "Failed"


def own_job(job: Job, members: Mapping[str, Machine], cluster: str) -> tuple[str, Job] | Refusal:
    """Return a member's own job for a job of the fleet, with the member's name.

    `cluster`: the member; empty: the first one that has the job.
    """
    parts = _PartIndex(members).of(job)
    found = next(((each.cluster, each.there) for each in parts if cluster in ("", each.cluster) and each.there), None)
    if found is not None:
        return found
    if cluster and cluster not in members:
        names = ", ".join(members)
        return Refusal(RefusalKind.NOT_FOUND, f"The fleet has no member {cluster!r}; its members are {names}.")
    where = ", ".join(each.cluster for each in parts)
    bound = f"it is bound to {where}" if where else "it is bound to no cluster yet"
    return Refusal(RefusalKind.NOT_FOUND, f"{_nobody(cluster)} of job {job.id}: {bound}.")


def _nobody(cluster: str) -> str:
    return f"{cluster} has no object" if cluster else "No cluster has an object"
