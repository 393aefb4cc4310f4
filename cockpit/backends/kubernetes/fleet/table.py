"""The rows of a fleet's table: jobs and pods over all members, with the fleet's state and each member's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.mapping.fleet_placement import policy_of
from cockpit.backends.kubernetes.mapping.fleet_status import bound_to, own_word, reports_of, status_of
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow, FleetShown
from cockpit.model.ids import JobId
from cockpit.present.reasons import reason_sentence

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.fleet_job import FleetJob
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.model.ids import Millis
    from cockpit.model.jobrow import JobRow

_OF_FLEET = ("karmada.io/", "one.alibabacloud.com/")
"""What is in the keys of the labels and annotations that a fleet writes at the objects that it sends."""


class ObjectKey(NamedTuple):
    """A job's object, which has the same name on the host and on each member."""

    kind: str
    namespace: str
    name: str


class ListedJob(NamedTuple):
    """A job with its row on its own cluster."""

    row: JobRow
    job: KubeJob

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.job.kind, self.job.meta.namespace, self.job.meta.name)


MemberJobs = Mapping[str, tuple[Mapping[ObjectKey, ListedJob] | None, str]]
"""The jobs of each member; or None and why it does not answer."""


def fleet_shown(jobs: Iterable[ListedJob], members: MemberJobs, now: Millis, *, pods: bool, alone: bool) -> FleetShown:
    """Return the rows of the host's jobs, then those of jobs that were submitted to members directly.

    `pods`: those in place of the jobs. `alone`: leave out what is not of these jobs.
    """
    listed = tuple(jobs)
    if pods:
        return FleetShown(pods=tuple(_pod_rows(listed, members, alone=alone)))
    of_fleet = (row for each in listed for row in _job_rows(each, members, now))
    direct = () if alone else (_direct_row(name, each, now) for name, each in _direct(listed, members))
    return FleetShown(jobs=(*of_fleet, *direct))


def _job_rows(each: ListedJob, members: MemberJobs, now: Millis) -> Iterator[FleetJobRow]:
    row, job, fleet = each.row, each.job, each.job.fleet
    own = own_word(job.workload.now) if job.workload is not None else ""
    bound = bound_to(fleet) if fleet is not None else ()
    reported = {item.cluster_name: own_word(status_of(item)) for item in reports_of(fleet)} if fleet is not None else {}
    division = _division(fleet) if fleet is not None else ""
    for target in bound:
        there, silence = _part(each, target.name, members)
        yield FleetJobRow(
            job=row.id,
            name=row.name,
            user=row.user,
            cluster=target.name,
            fleet_state=own or str(row.state),
            # The fleet has asked the member, too, maybe some time ago.
            state=_state(there) if there is not None else reported.get(target.name, ""),
            created_at=there.job.meta.created_at if there is not None else row.submitted_at,
            adopted=there is not None and _is_of_fleet(there.job.meta),
            own=_shown(there.key) if there is not None else "",
            replicas=there.job.wanted if there is not None else target.replicas or job.wanted,
            division=division,
            ready=_ready(there.job) if there is not None else 0,
            reason=_reason(there, now) if there is not None else _reason(each, now),
            heard_at=now if not silence else None,
            silence=silence,
        )
    if not bound:
        yield FleetJobRow(
            job=row.id,
            name=row.name,
            user=row.user,
            cluster="",
            fleet_state=own or str(row.state),
            state="",
            created_at=row.submitted_at,
            adopted=False,
            replicas=job.wanted,
            division=division,
            reason=_reason(each, now),
        )


def _division(fleet: FleetJob) -> str:
    """Return how the job's policy spreads it; empty: no policy selects it."""
    policy = policy_of(fleet)
    return "" if policy is None else "Gang" if policy.gang else policy.division


def _direct_row(cluster: str, each: ListedJob, now: Millis) -> FleetJobRow:
    return FleetJobRow(
        job=JobId(0),
        name=each.row.name,
        user=each.row.user,
        cluster=cluster,
        fleet_state="",
        state=_state(each),
        created_at=each.job.meta.created_at,
        adopted=_is_of_fleet(each.job.meta),
        own=_shown(each.key),
        replicas=each.job.wanted,
        ready=_ready(each.job),
        reason=_reason(each, now),
        heard_at=now,
    )


def _direct(listed: Iterable[ListedJob], members: MemberJobs) -> Iterator[tuple[str, ListedJob]]:
    """Yield the jobs of members that the host has not bound there."""
    bound = {
        (target.name, each.key) for each in listed if each.job.fleet is not None for target in bound_to(each.job.fleet)
    }
    for name, (jobs, _) in members.items():
        for key, each in (jobs or {}).items():
            if (name, key) not in bound:
                yield name, each


def _pod_rows(listed: Iterable[ListedJob], members: MemberJobs, *, alone: bool) -> Iterator[FleetPodRow]:
    for each in listed:
        for target in bound_to(each.job.fleet) if each.job.fleet is not None else ():
            there, _ = _part(each, target.name, members)
            yield from _pods_of(each.row.id, target.name, there) if there is not None else ()
    if not alone:
        for name, there in _direct(listed, members):
            yield from _pods_of(JobId(0), name, there)


def _pods_of(job: JobId, cluster: str, there: ListedJob) -> Iterator[FleetPodRow]:
    for rank, pod in enumerate(there.job.pods):
        statuses = pod.now.container_statuses or ()
        yield FleetPodRow(
            job=job,
            name=pod.metadata.name,
            cluster=cluster,
            ready=sum(each.ready for each in statuses),
            containers=len(pod.spec.containers),
            status=pod_word(pod),
            restarts=sum(each.restart_count for each in statuses),
            created_at=pod.metadata.created_at,
            rank=rank,
            node=pod.spec.node_name,
            own=_shown(there.key),
        )


def pod_word(pod: Pod) -> str:
    """Return the state of a pod as `kubectl get` prints it: that of its containers, where one does not run."""
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating"
    if pod.now.reason:
        return pod.now.reason
    for each in pod.now.container_statuses or ():
        state = each.state
        if state is not None and state.waiting is not None and state.waiting.reason:
            return state.waiting.reason
        if state is not None and state.terminated is not None:
            return state.terminated.reason or f"ExitCode:{state.terminated.exit_code}"
    return pod.now.phase


def _part(each: ListedJob, member: str, members: MemberJobs) -> tuple[ListedJob | None, str]:
    """Return a member's own object of a job, and why the member does not answer."""
    jobs, silence = members.get(member, (None, ""))
    return (jobs or {}).get(each.key), silence


def _state(there: ListedJob) -> str:
    """Return the member's own word; of an object without one, how far cockpit sees it."""
    workload = there.job.workload
    return (own_word(workload.now) if workload is not None else "") or str(there.row.state)


def _ready(job: KubeJob) -> int:
    return sum(any(each.ready for each in pod.now.container_statuses or ()) for pod in job.placed)


def _reason(each: ListedJob, now: Millis) -> str:
    return reason_sentence(each.row.reason, now, None) if each.row.reason is not None else ""


def _is_of_fleet(meta: ObjectMeta) -> bool:
    keys = (*(meta.labels or ()), *(meta.annotations or ()))
    return any(mark in key for key in keys for mark in _OF_FLEET)


def _shown(key: ObjectKey) -> str:
    return f"{key.kind} {key.namespace}/{key.name}"
