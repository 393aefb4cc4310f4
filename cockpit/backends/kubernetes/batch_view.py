"""What Volcano's queues and elastic quotas tell: the quota behind a batch scheduler's words, and the queues as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.elastic_quotas import ElasticQuotas
from cockpit.backends.kubernetes.mapping.quota_answer import QUOTA_WORDS, QuotaAnswer, QuotaBook, with_holders
from cockpit.backends.kubernetes.mapping.volcano import volcano_queue_rows
from cockpit.model.pod_reasons import GangIncomplete, MemberState, QueueWaits, Unschedulable
from cockpit.model.reasons import NeverFits, NoEligibleNode, NotEnoughFree

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.schedulers import BatchSchedulers
    from cockpit.model.forecast import Outlook
    from cockpit.model.ids import JobId
    from cockpit.model.reasons import Explanation, Reason
    from cockpit.model.view import QueueRow

_OF_SCHEDULER = frozenset({MemberState.NO_NODE, MemberState.WOULD_FIT, MemberState.NOT_CONSIDERED})


class BatchView:
    """Answers from the objects that were read last."""

    def __init__(self, schedulers: BatchSchedulers, jobs: JobList) -> None:
        self._schedulers, self._jobs = schedulers, jobs

    def rows(self) -> Iterator[QueueRow]:
        """Yield a row for each queue of Volcano and for each elastic quota, parents first."""
        yield from volcano_queue_rows(self._schedulers.queues.values(), self._schedulers.groups.values())
        yield from self._quotas().rows(self._jobs.jobs.values())

    def with_figures(self, explanation: Explanation, outlook: Outlook) -> tuple[Explanation, Outlook]:
        """Return both with figures where a batch scheduler says only that a job waits for its quota, queue or gang: the
        quota that is short and the jobs that use it, else what the nodes lack. `outlook`: the embedded scheduler's."""
        judged = outlook.explanation.reason if outlook.explanation is not None else None
        if not _lacks_figures(explanation.reason):
            never = _concerns_nodes(explanation.reason) and isinstance(judged, NeverFits | NoEligibleNode)
            return replace(explanation, reason=judged) if never else explanation, outlook
        answer = self._answer(explanation.job)
        if answer is None:
            # What the nodes could take of a gang says more than that too little is free.
            looked = isinstance(explanation.reason, GangIncomplete) and explanation.reason.by_nodes is not None
            short = isinstance(judged, NotEnoughFree) and not looked
            of_nodes = short or isinstance(judged, NeverFits | NoEligibleNode)
            return replace(explanation, reason=judged) if of_nodes else explanation, outlook
        return replace(explanation, reason=answer.reason), with_holders(outlook, answer.holders, self._jobs.rows)

    def is_short(self, explanation: Explanation) -> bool:
        """Return whether a quota or a queue is too small for a job of which the scheduler says nothing else."""
        return _lacks_figures(explanation.reason) and self._answer(explanation.job) is not None

    def _answer(self, job: JobId) -> QuotaAnswer | None:
        jobs = self._jobs.jobs
        return QuotaBook(self._quotas(), self._schedulers.queues).answer(jobs[job], jobs)

    def _quotas(self) -> ElasticQuotas:
        return ElasticQuotas(self._schedulers.quotas.values())


def _lacks_figures(reason: Reason) -> bool:
    """Return whether the reason says that the job waits, but not what it lacks."""
    match reason:
        case QueueWaits():
            return (reason.manager, reason.code) in QUOTA_WORDS
        case GangIncomplete():
            return _concerns_nodes(reason) and all(each.reason is None for each in reason.missing)
        case Unschedulable():
            return reason.nodes is None
        case _:
            return False


def _concerns_nodes(reason: Reason) -> bool:
    """Return whether the job waits for its gang, of which nothing but nodes keeps the pods back."""
    return isinstance(reason, GangIncomplete) and all(each.state in _OF_SCHEDULER for each in reason.missing)
