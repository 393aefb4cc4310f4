"""The job list of a cluster: rows that are made anew only for jobs that have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.mapping.ids import JobNumbers
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.nodes import card_model
from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.model.ids import JobId
from cockpit.model.jobrow import JobRow
from cockpit.model.spec import Access

AT_ONCE = 100
"""Jobs whose rows are made without a break, in some 5 ms."""


class JobList:
    """All jobs that the user may see. Unchanged jobs keep their row objects, so that watchers compare identities."""

    def __init__(self, inventory: Inventory, shown: Callable[[KubeJob, JobRow], JobRow]) -> None:
        """`shown`: returns the row with what is known of the job beside its objects, such as that it is held."""
        self._inventory, self._shown = inventory, shown
        self.numbers = JobNumbers()
        self.version = 0
        """Grows whenever a row changes."""
        self.jobs: dict[JobId, KubeJob] = {}
        self.rows: dict[JobId, JobRow] = {}

    def refresh(self) -> dict[JobId, JobRow]:
        """Take over all changes since the last call, and return the rows. The result is changed by the next call."""
        self._take(None)
        return self.rows

    async def settle(self) -> None:
        """Take over all changes, a few at a time: thousands of jobs at once would keep a screen from being drawn."""
        while self._inventory.has_changes:
            self._take(AT_ONCE)
            await asyncio.sleep(0)

    def _take(self, most: int | None) -> None:
        for uid, job in self._inventory.take_changes(most):
            if job is None:
                self._remove(uid)
            else:
                self._put(job)

    def _put(self, job: KubeJob) -> None:
        number = self.numbers.number(job.meta)
        row = self._shown(job, row_of(job, number, self._model_of, Access.RW))
        self.jobs[number] = job
        old = self.rows.get(number)
        if old is None or replace(row, version=old.version) != old:
            self.version += 1
            self.rows[number] = replace(row, version=self.version)

    def _remove(self, uid: str) -> None:
        number = self.numbers.known(uid)
        if number is not None and number in self.rows:
            self.version += 1
            del self.rows[number], self.jobs[number]
            self.numbers.forget(uid)

    def _model_of(self, node: str) -> str:
        known = self._inventory.nodes.get(node)
        return card_model(known.metadata.labels or {}) if known is not None else ""
