"""What a watcher is told of a subscription's pages and changes."""

from __future__ import annotations

from cockpit.backends.base import JobsDelta
from cockpit.backends.local.watching import LiveRows
from cockpit.model.job import JobState
from cockpit.model.jobrow import FIELDS
from cockpit.protocol.pages import AllLoaded, JobsChange, Update, page_of, start_over
from tests.doubles.samples import queued_row

RUNNING = {FIELDS.index("state"): "running"}


def told(rows: LiveRows, *updates: Update) -> list[JobsDelta]:
    return [delta for update in updates for delta in rows.take(update)]


def ids(delta: JobsDelta) -> list[int]:
    return [row.id for row in delta.changed]


def states(delta: JobsDelta) -> list[tuple[int, JobState]]:
    return [(row.id, row.state) for row in delta.changed]


def test_pages_and_changes_are_followed():
    rows = LiveRows()
    rows.begin()
    first, loaded = told(rows, page_of([queued_row(1), queued_row(2)]), AllLoaded())
    assert (ids(first), first.loaded) == ([1, 2], False)
    assert (ids(loaded), loaded.loaded) == ([], True)
    (delta,) = told(rows, JobsChange(5, page_of([queued_row(3)]), ((1, 5, RUNNING),), (2,)))
    assert states(delta) == [(3, JobState.QUEUED), (1, JobState.RUNNING)]
    assert delta.removed == (2,)


def test_rows_missing_from_a_new_subscription_are_removed():
    rows = LiveRows()
    rows.begin()
    told(rows, page_of([queued_row(1), queued_row(2)]), AllLoaded(), start_over(6))
    rows.begin()
    again, loaded = told(rows, page_of([queued_row(2), queued_row(3)]), AllLoaded())
    assert ids(again) == [3]
    assert loaded.removed == (1,)
