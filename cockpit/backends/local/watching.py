"""Rows that follow a subscription, over as many connections as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.base import JobsDelta
from cockpit.model.ids import JobId
from cockpit.protocol.pages import AllLoaded, JobsChange, JobsPage, Update, rows_of, with_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.jobrow import JobRow

ROWS_AT_ONCE = 1_000
"""The largest number of rows in one piece of a change, so that a screen that shows them is never blocked for long."""


class LiveRows:
    """The rows that a subscription has delivered. A new subscription sends all rows again; only differences are passed
    on."""

    def __init__(self) -> None:
        self._rows: dict[JobId, JobRow] = {}
        self._unseen: set[JobId] = set()

    def begin(self) -> None:
        """Note that a subscription starts: rows that it does not have are gone."""
        self._unseen = set(self._rows)

    def take(self, update: Update) -> Iterator[JobsDelta]:
        """Apply an update, and yield its changes in small pieces."""
        match update:
            case JobsPage():
                yield JobsDelta(tuple(self._take_differing(update)), (), 0, loaded=False)
            case AllLoaded():
                yield JobsDelta((), self._forget(sorted(self._unseen)), 0)
            case JobsChange():
                yield from self._apply_change(update)

    def _take_differing(self, page: JobsPage) -> list[JobRow]:
        rows = rows_of(page)
        known = self._rows
        # By value: rows that were decoded again are new objects.
        differing = [row for row in rows if known.get(row.id) != row]
        known.update([(row.id, row) for row in differing])
        self._unseen.difference_update([row.id for row in rows])
        return differing

    def _apply_change(self, change: JobsChange) -> Iterator[JobsDelta]:
        new = self._take_differing(change.new)
        removed = self._forget([JobId(job) for job in change.removed])
        # Once even without changed rows: new and removed ones, and the version, have to be passed on.
        for start in range(0, max(1, len(change.changed)), ROWS_AT_ONCE):
            changed = [self._patch_row(*each) for each in change.changed[start : start + ROWS_AT_ONCE]]
            yield JobsDelta((*new, *changed), removed, change.version)
            new, removed = [], ()

    def _patch_row(self, job: int, _version: int, columns: dict[int, object]) -> JobRow:
        row = self._rows[JobId(job)] = with_changes(self._rows[JobId(job)], columns)
        return row

    def _forget(self, jobs: list[JobId]) -> tuple[JobId, ...]:
        for job in jobs:
            del self._rows[job]
        return tuple(jobs)
