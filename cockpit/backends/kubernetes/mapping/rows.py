"""Rows of the job list out of Kubernetes' jobs."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.backends.kubernetes.mapping.cards.view import NO_CLUSTER_CARDS, ClusterCards
from cockpit.backends.kubernetes.mapping.elastic_quotas import quota_reason
from cockpit.backends.kubernetes.mapping.fleet_placement import clusters_of, fleet_reason
from cockpit.backends.kubernetes.mapping.gangs import gang_reason
from cockpit.backends.kubernetes.mapping.kube_jobs import SUSPENDED_BY, KubeJob
from cockpit.backends.kubernetes.mapping.kube_queue import queue_reason
from cockpit.backends.kubernetes.mapping.kueue import admission_reason
from cockpit.backends.kubernetes.mapping.volcano import volcano_reason
from cockpit.backends.kubernetes.mapping.waiting import waiting_reason
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, Reason
from cockpit.model.spec import NO_LIMIT_SECONDS, Access


def row_of(
    job: KubeJob,
    number: JobId,
    model_of: Callable[[str], str],
    may: Access,
    cluster_cards: ClusterCards = NO_CLUSTER_CARDS,
) -> JobRow:
    """Return the row of a job. `model_of`: the model of a node's cards by the node's name."""
    state, since = job.state, job.meta.created_at
    ended, started = job.ended_at, job.started_at
    nodes = job.nodes
    cards = cluster_cards.job_milli(job)
    failed = job.first_failure
    return JobRow(
        id=number,
        version=0,
        name=job.meta.name,
        user=job.user,
        state=state,
        state_since=ended or (started if state is JobState.RUNNING else None) or since,
        submitted_at=since,
        started_at=started if state is not JobState.QUEUED else None,
        ended_at=ended,
        held_until=None,
        ending=None,
        end_cause=job.end_cause,
        exit_code=job.exit_code if state in ENDED else None,
        nodes=len(nodes) or job.wanted if job.workers is None else job.present_workers or job.workers[1],
        cpus=-(-sum(count * each.milli_cpus for count, each in job.sizes) // 1000),
        memory_mib=sum(count * each.memory_mib for count, each in job.sizes),
        card_milli=cards,
        card_models=cluster_cards.models(job) or _models(nodes, model_of) if cards else (),
        placed_on=tuple(map(NodeName, nodes)),
        time_limit_seconds=job.deadline_seconds or NO_LIMIT_SECONDS,
        reason=reason_of(job),
        command=job.command,
        project=job.meta.namespace,
        oom=job.is_oom,
        partitions=(job.queue,) if job.queue else (),
        account=job.meta.namespace,
        qos=job.urgency_class,
        priority=job.priority if state is JobState.QUEUED else None,
        may=may,
        workers=job.workers,
        waits_until=job.waits_until if state is JobState.SUSPENDED else None,
        clusters=clusters_of(job, job.fleet) if job.fleet is not None else (),
        retries=job.retries,
        failed=(failed[0], failed[1].exit_code) if failed is not None and len(job.pods) > 1 else None,
    )


def reason_of(job: KubeJob) -> Reason | None:
    """Return why the job does not run with all its pods; None: it does, or has ended."""
    if job.state in ENDED:
        return None
    # A queue manager suspends jobs until it admits them; without one a user has.
    if job.queued is not None and (waits := admission_reason(job.queued)) is not None:
        return waits
    if job.turn is not None and job.waits_in_queue:
        return queue_reason(job.turn)
    if job.fleet is not None and not job.pods and not job.is_suspended:
        return fleet_reason(job, job.fleet)
    if job.is_suspended and not job.is_short_of_workers:
        return Held(job.meta.annotation(SUSPENDED_BY) or job.user or job.suspended_by, None)
    return volcano_reason(job) or quota_reason(job) or gang_reason(job) or waiting_reason(job)


def _models(nodes: tuple[str, ...], model_of: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(model_of, nodes))))
