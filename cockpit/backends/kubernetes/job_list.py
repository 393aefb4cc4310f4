"""The job list of a cluster: rows that are made anew only for jobs that have changed, and jobs that are gone.

Kubernetes forgets a job with its object. What was seen of it before stays here while this cockpit is connected.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.mapping.accounting import past_job
from cockpit.backends.kubernetes.mapping.cards.models import card_model
from cockpit.backends.kubernetes.mapping.cards.requests import NO_UNITS, Units, depends_on_cards
from cockpit.backends.kubernetes.mapping.ids import JobNumbers
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.errors import RequestRefused
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.runtime.clock import Timekeeper

AT_ONCE = 100
"""Jobs whose rows are made without a break, in some 5 ms."""
MOST_GONE = 500
"""Most jobs that are remembered after their objects are gone; the first that went is dropped first."""


class GoneJob(NamedTuple):
    """A job whose object is gone, as it was last seen. One that had not ended was stopped by deleting it."""

    row: JobRow
    record: Job


class JobList:
    """All jobs that the user may see. Unchanged jobs keep their row objects, so that watchers compare identities."""

    def __init__(
        self,
        inventory: Inventory,
        shown: Callable[[KubeJob, JobRow], JobRow],
        clock: Timekeeper,
        access: Callable[[str, Resource | None], Access],
    ) -> None:
        """`shown`: returns the row with what is known of the job beside its objects, such as that it is held. `access`:
        what the user may do with the objects of a kind in a namespace; None: of a kind that is not read."""
        self._inventory, self._shown, self._clock, self._access = inventory, shown, clock, access
        self.numbers = JobNumbers(lambda uid: inventory.jobs.resource(uid) is not None)
        self.version = 0
        """Grows whenever a row changes."""
        self.jobs: dict[JobId, KubeJob] = {}
        self.rows: dict[JobId, JobRow] = {}
        self.namespaces: Counter[str] = Counter()
        """The namespaces of the jobs, with the number of jobs in each."""
        self._units: Units = NO_UNITS
        self.gone: dict[JobId, GoneJob] = {}
        """The jobs that are gone, in the order in which they went."""

    def refresh(self) -> dict[JobId, JobRow]:
        """Take over all changes since the last call, and return the rows. The result is changed by the next call."""
        self._take(None)
        return self.rows

    def row(self, number: JobId) -> JobRow | None:
        """Return the row of a job, also of one that is gone; None: it is unknown."""
        gone = self.gone.get(number)
        return gone.row if gone is not None else self.rows.get(number)

    def known_row(self, number: JobId, task: int | None = None) -> JobRow:
        """Return the row of a job, also of one that is gone. Refused for an unknown one, and for tasks of arrays."""
        row = self.row(number) if task is None else None
        if row is None:
            raise _unknown(number)
        return row

    def known(self, number: JobId) -> KubeJob:
        """Return a job of the cluster. Refused for an unknown one, and for one that is gone."""
        if (job := self.jobs.get(number)) is not None:
            return job
        if (gone := self.gone.get(number)) is None:
            raise _unknown(number)
        message = f"Job {job_words(number)} ({gone.row.project}/{gone.row.name}) is gone: its object was deleted."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))

    def found(self, number: JobId) -> tuple[Resource, KubeJob]:
        """Return a job and the kind of its object. Refused as `known` does, and where the kind may not be read."""
        job = self.known(number)
        resource = self._inventory.jobs.resource(job.meta.uid)
        if resource is None:
            message = f"You have no right to read an object of the kind {job.kind}, so that it cannot be changed here."
            raise RequestRefused(Refusal(RefusalKind.DENIED, message))
        return resource, job

    async def settle(self) -> None:
        """Take over all changes, a few at a time: thousands of jobs at once would keep a screen from being drawn."""
        while self._inventory.jobs.has_changes:
            self._take(AT_ONCE)
            await asyncio.sleep(0)

    def look_again(self) -> None:
        """Have the rows of all jobs made anew: something has changed that is in none of their objects."""
        for each in self.jobs.values():
            self._inventory.jobs.mark(each.meta.uid)

    def _take(self, most: int | None) -> None:
        if self._units != self._inventory.cards.units:
            self._units = self._inventory.cards.units
            for known in self.jobs.values():
                if any(depends_on_cards(each) for _, each in known.sizes):
                    self._inventory.jobs.mark(known.meta.uid)
        for uid, job in self._inventory.jobs.take_changes(most):
            if job is None:
                self._remove(uid)
            else:
                self._put(job)

    def _put(self, job: KubeJob) -> None:
        number = self.numbers.number(job.meta)
        may = self._access(job.meta.namespace, self._inventory.jobs.resource(job.meta.uid))
        row = self._shown(job, row_of(job, number, self._model_of, may, self._inventory.cards))
        self._inventory.devices.note(job)
        if number not in self.jobs:
            self.namespaces[job.meta.namespace] += 1
        self.jobs[number] = job
        # A watch that broke off may have left out an object for a while.
        self.gone.pop(number, None)
        old = self.rows.get(number)
        if old is None or replace(row, version=old.version) != old:
            self.version += 1
            self.rows[number] = replace(row, version=self.version)

    def _remove(self, uid: str) -> None:
        self._inventory.devices.forget(uid)
        number = self.numbers.known(uid)
        if number is None or number not in self.rows:
            return
        self.version += 1
        row, job = self.rows.pop(number), self.jobs.pop(number)
        self.namespaces[job.meta.namespace] -= 1
        self.namespaces += Counter()  # without those that have no more jobs
        if self._is_gone(job):
            self.gone[number] = self._gone(row, job)
            while len(self.gone) > MOST_GONE:
                self.forget(next(iter(self.gone)))
        else:
            self.numbers.forget(uid)

    def forget(self, number: JobId) -> None:
        """Forget a job that is gone."""
        self.numbers.forget_number(number)
        del self.gone[number]
        self.version += 1

    def _is_gone(self, job: KubeJob) -> bool:
        """Return whether the job's object was deleted: it may also belong to another job, or be hidden from now on."""
        is_hidden = any(each.kind == job.kind for each in self._inventory.absent) or not self._inventory.is_read(
            job.meta
        )
        return self._inventory.jobs.resource(job.meta.uid) is None and not is_hidden

    def _gone(self, row: JobRow, job: KubeJob) -> GoneJob:
        record = past_job(job, row.id, self._inventory.cards)
        if row.state in ENDED:
            # The debug hold of a failed container went with its pod.
            return GoneJob(replace(row, held_until=None, version=self.version), record)
        now = self._clock.now()
        end = {"state": JobState.STOPPED, "state_since": now, "ended_at": now, "end_cause": EndCause.STOP}
        row = replace(row, **end, reason=None, priority=None, version=self.version)
        return GoneJob(row, replace(record, **end, held_by=""))

    def _model_of(self, node: str) -> str:
        known = self._inventory.nodes.get(node)
        return card_model(known.metadata.labels or {}) if known is not None else ""


def _unknown(number: JobId) -> RequestRefused:
    return RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_words(number)}."))
