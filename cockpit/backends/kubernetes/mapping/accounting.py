"""What jobs held, for accounting: the amounts of their pods, from the start of their first container to their end.

Which card a pod had is known to the kubelet alone, so cards are amounts without places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.cards.scheme import MOST_CARDS
from cockpit.backends.kubernetes.mapping.planning import job_record, shown_spec
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts, requested
from cockpit.engine.views.spending import divided, ended_job, spans
from cockpit.model.accounting import EndedJob, Spending
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ENDED
from cockpit.model.node import Allocation, CardSlice, first_cards
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow


def ended_jobs(
    past: Iterable[tuple[JobRow, Job]], since: Millis | None, until: Millis | None, user: str | None
) -> list[EndedJob]:
    """Return the jobs that ended from `since` on and before `until`, of one user or of all, the newest first."""
    wanted = [
        (row, job)
        for row, job in past
        if row.ended_at is not None
        and (since is None or row.ended_at >= since)
        and (until is None or row.ended_at < until)
        and user in {None, row.user}
    ]
    wanted.sort(key=lambda each: -(each[0].ended_at or 0))
    return [replace(ended_job(job), row=row) for row, job in wanted]


def spending(jobs: Iterable[Job], edges: Sequence[Millis], now: Millis) -> Spending:
    """Return what these jobs held in each interval between two edges; a running one up to `now`."""
    held = (span for job in jobs for span in spans(job, now))
    return Spending(tuple(edges), tuple(tuple(each) for each in divided(held, edges)))


def past_job(job: KubeJob, number: JobId, cards: ClusterCards) -> Job:
    """Return the record of a job that has started, with what its pods hold or held."""
    placement = tuple(held_by(job, cards))
    record = job_record(job, number, placement, cards)
    if record.attempt is not None:
        record = replace(record, attempt=replace(record.attempt, placement=placement))
    # Not as an elastic job: when its workers came and went is not known.
    return replace(record, spec=replace(shown_spec(job, cards), elastic=None), qos=job.urgency_class)


def held_by(job: KubeJob, cards: ClusterCards) -> Iterator[Allocation]:
    pods = [pod for pod in job.pods if pod.spec.node_name] if job.state in ENDED else job.placed
    for rank, pod in enumerate(pods):
        wants = requested(pod.spec)
        yield Allocation(rank, NodeName(pod.spec.node_name), wants.cpus, wants.memory_mib, _cards(job, wants, cards))
    if pods or job.state not in ENDED or job.started_at is None:
        return
    # Its controller has deleted the pods of a job that has ended (cleanPodPolicy), but its spec still has their sizes.
    sizes = (each for count, each in job.sizes for _ in range(count))
    for rank, wants in enumerate(sizes):
        yield Allocation(rank, NodeName(""), wants.cpus, wants.memory_mib, _cards(job, wants, cards))


def _cards(job: KubeJob, wants: PodAmounts, cards: ClusterCards) -> tuple[CardSlice, ...]:
    # A pod that names its node may request any number; the kubelet refuses it later.
    return first_cards(min(cards.pod_milli(job, wants), WHOLE_CARD * MOST_CARDS))
