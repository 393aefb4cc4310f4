"""What Volcano's queues and elastic quotas tell: the quota behind a batch scheduler's words, and the queues as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.elastic_quotas import ElasticQuotas
from cockpit.backends.kubernetes.mapping.quota_answer import QUOTA_WORDS, QuotaBook, holding_job
from cockpit.backends.kubernetes.mapping.volcano import volcano_queue_rows
from cockpit.model.pod_reasons import QueueWaits

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.schedulers import BatchSchedulers
    from cockpit.model.forecast import Outlook
    from cockpit.model.reasons import Explanation
    from cockpit.model.view import QueueRow

MOST_HOLDERS = 10


class BatchView:
    """Answers from the objects that were read last."""

    def __init__(self, schedulers: BatchSchedulers, jobs: JobList) -> None:
        self._schedulers, self._jobs = schedulers, jobs

    def rows(self) -> Iterator[QueueRow]:
        """Yield a row for each queue of Volcano and for each elastic quota, parents first."""
        yield from volcano_queue_rows(self._schedulers.queues.values())
        yield from self._quotas().rows(self._jobs.jobs.values())

    def with_quota(self, explanation: Explanation, outlook: Outlook) -> tuple[Explanation, Outlook]:
        """Return both with the quota that is short and the jobs that use it, where a batch scheduler says only that a
        job waits for its quota or queue."""
        reason = explanation.reason
        if not isinstance(reason, QueueWaits) or (reason.manager, reason.code) not in QUOTA_WORDS:
            return explanation, outlook
        book, jobs = QuotaBook(self._quotas(), self._schedulers.queues), self._jobs.jobs
        answer = book.answer(jobs[explanation.job], jobs)
        if answer is None:
            return explanation, outlook
        shown = answer.holders[:MOST_HOLDERS]
        known = {each.job for each in outlook.named}
        named = (holding_job(self._jobs.rows[each]) for each in shown if each not in known)
        return replace(explanation, reason=answer.reason), replace(
            outlook, holders=shown, holders_in_all=len(answer.holders), named=(*outlook.named, *named)
        )

    def _quotas(self) -> ElasticQuotas:
        return ElasticQuotas(self._schedulers.quotas.values())
