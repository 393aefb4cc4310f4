"""What jobs held, for accounting: the amounts of their pods, from the start of their first container to their end.

Which card a pod had is known to the kubelet alone, so cards are amounts without places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.planning import job_record, shown_spec
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation, first_cards

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.model.job import Job


def past_job(job: KubeJob, number: JobId, cards: ClusterCards) -> Job:
    """Return the record of a job that has started, with what its pods hold or held."""
    placement = tuple(_held(job, cards))
    record = job_record(job, number, placement, cards)
    if record.attempt is not None:
        record = replace(record, attempt=replace(record.attempt, placement=placement))
    # Not as an elastic job: when its workers came and went is not known.
    return replace(record, spec=replace(shown_spec(job, cards), elastic=None), qos=job.urgency_class)


def _held(job: KubeJob, cards: ClusterCards) -> Iterator[Allocation]:
    pods = [pod for pod in job.pods if pod.spec.node_name]
    for rank, pod in enumerate(pods):
        wants = requested(pod.spec)
        yield Allocation(
            rank, NodeName(pod.spec.node_name), wants.cpus, wants.memory_mib, first_cards(cards.pod_milli(job, wants))
        )
    if pods or job.started_at is None:
        return
    # Its controller has deleted the pods of a job that has ended (cleanPodPolicy), but its spec still has their sizes.
    sizes = (each for count, each in job.sizes for _ in range(count))
    for rank, wants in enumerate(sizes):
        yield Allocation(rank, NodeName(""), wants.cpus, wants.memory_mib, first_cards(cards.pod_milli(job, wants)))
