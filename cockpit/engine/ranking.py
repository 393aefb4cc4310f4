"""The queue in its order, as rows: who stands where, and by what priority. Facts only; `present` makes words of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.views import HIDDEN
from cockpit.model.ids import JobId
from cockpit.model.view import PriorityRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cockpit.model.job import Job
    from cockpit.model.priority import Breakdown
    from cockpit.sched.priority import PriorityTable

Entry = tuple[JobId, str]
"""A job in one of its partitions."""


def ranked(
    table: PriorityTable,
    queue: Mapping[JobId, Job],
    may_see: Callable[[Job], bool],
    before: PriorityTable | None = None,
) -> Iterator[PriorityRow]:
    """A row for each entry of the table, held jobs last. A job that the asker may not see has its place alone, and none
    when it is held. `before`: the order that these rows are compared with.
    """
    places = places_of(table.order, queue)
    placed_before = places_of(before.order, queue) if before is not None else {}
    held = {entry: None for entry in table.order if entry[0] in queue and entry not in places}
    for entry, place in (places | held).items():
        job = queue[entry[0]]
        if may_see(job):
            total = before.breakdown(*entry) if before is not None else None
            yield _row(job, entry[1], place, table.breakdown(*entry), placed_before.get(entry), total)
        elif place is not None:
            yield PriorityRow(JobId(0), HIDDEN, HIDDEN, HIDDEN, HIDDEN, entry[1], place, None, placed_before.get(entry))


def places_of(order: Iterable[Entry], queue: Mapping[JobId, Job]) -> dict[Entry, int]:
    """How many other jobs stand before each entry, and one; in this order, without held jobs."""
    seen: set[JobId] = set()
    places: dict[Entry, int] = {}
    for job, partition in order:
        if job in queue and not queue[job].held_by:
            places[job, partition] = len(seen - {job}) + 1
            seen.add(job)
    return places
