"""The records of jobs: as cockpit's own engine would keep them, with what was seen of them while they were watched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.backends.job_history import History
from cockpit.backends.kubernetes.events import JobEvents
from cockpit.backends.kubernetes.failures import LastLines
from cockpit.backends.kubernetes.mapping.accounting import past_job
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, job_placement, node_placement, shown_job
from cockpit.backends.kubernetes.why import SCHEDULER
from cockpit.runtime.observed_history import ObservedHistory

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.kubernetes.holds import Holds
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.events import EventRecord
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.jobrow import JobRow
    from cockpit.model.reasons import Waited
    from cockpit.runtime.clock import Timekeeper


class JobRecords:
    """Makes records of jobs that are listed, and keeps those of jobs that are gone."""

    def __init__(
        self, api: Api, inventory: Inventory, jobs: JobList, holds: Holds, clock: Timekeeper, history: Path | None
    ) -> None:
        """`history`: the file of what was seen of jobs; None: it is forgotten when cockpit ends."""
        self._inventory, self._jobs, self._holds, self._clock = inventory, jobs, holds, clock
        self._history, self._last = History(ObservedHistory(history, SCHEDULER)), LastLines(api)
        self._events = JobEvents(api, self._history)

    def record(self, job: JobId) -> Job:
        """Return the record of a job, with the nodes that it has and without its cards."""
        if (gone := self._jobs.gone.get(job)) is not None:
            return gone.record
        found, cards = self._jobs.jobs[job], self._inventory.cards
        return self._holds.record(found, shown_job(found, job, node_placement(found), cards), cards)

    def placed_record(self, job: JobId, lists: ClusterLists) -> Job:
        """Return the record with what the job occupies, for which all pods are looked at."""
        if job in self._jobs.gone:
            return self.record(job)
        found, cards = self._jobs.jobs[job], self._inventory.cards
        return self._holds.record(found, shown_job(found, job, job_placement(lists, job), cards), cards)

    def past(self) -> Iterator[tuple[JobRow, Job]]:
        """Yield all jobs with what they hold or held."""
        for number, row in self._jobs.refresh().items():
            yield row, self._seen(number)
        yield from self._jobs.gone.values()

    async def last_lines(self, job: JobId) -> str:
        """Return the last lines of the replica that failed first; empty: none has failed, or its log is gone."""
        found = self._jobs.jobs.get(job)
        first = self._holds.failure(found) if found is not None else None
        return await self._last.of(found.pods[first.rank]) if found is not None and first is not None else ""

    async def events(self, job: JobId, *, recent: bool = False) -> list[EventRecord]:
        """Return the events of a job. `recent`: those that were read a moment ago will do."""
        return await self._events.of_job(job, self.record(job), self._jobs.jobs.get(job), recent=recent)

    async def all_events(self) -> list[EventRecord]:
        return await self._events.of_all(self._jobs.jobs, self._inventory.namespaces)

    def waited(self, job: JobId) -> tuple[Waited, ...]:
        """Return for what the job waited, as far as it was seen."""
        return self._history.waited(self.record(job), self._clock.now())

    def note(self) -> None:
        """Record what has changed since the last look."""
        # A copy: the list of rows is changed in place.
        gone = {job: each.row for job, each in self._jobs.gone.items()}
        self._history.look(self._jobs.rows | gone, self._seen, self._clock.now())

    def close(self) -> None:
        self._history.close()

    def _seen(self, number: JobId) -> Job:
        """Return a job with what its pods hold or held."""
        gone = self._jobs.gone.get(number)
        return gone.record if gone is not None else past_job(self._jobs.jobs[number], number, self._inventory.cards)
