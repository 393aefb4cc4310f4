"""A member of a fleet: a cluster that is opened when it is first needed, and watched as long as the fleet is open.

A member that does not answer keeps its last rows and figures, marked as old; the other members do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.base import Connection, JobsDelta, Phase
from cockpit.backends.fleet.id_translation import Words, in_fleet
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.capabilities import Capabilities
from cockpit.model.ids import JobId, Millis, member_id
from cockpit.model.jobrow import JobRow
from cockpit.model.view import ClusterRow, ClusterState, Overview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.backends.base import LiveBackend

RETRY_SECONDS = 5.0
"""Time before a cluster that could not be opened is tried again."""


class Opened(NamedTuple):
    """An open cluster: its backend, its clock, and the function that closes it."""

    backend: LiveBackend
    now: Callable[[], Millis]
    close: Callable[[], Awaitable[None]]
    still: bool = False
    """Whether its clock does not advance: a snapshot or a recording."""


class Member:
    """Rows, figures and connection state of one cluster, with the fleet's ids and times."""

    def __init__(
        self, number: int, name: str, way: str, opening: Callable[[], Awaitable[Opened]], now: Callable[[], Millis]
    ) -> None:
        self.number, self.name, self.way = number, name, way
        self._opening, self._now = opening, now
        self._open_cluster: Opened | None = None
        self._lock = asyncio.Lock()
        self.rows: dict[JobId, JobRow] = {}
        self.overview: Overview | None = None
        self._connection = Connection(Phase.CONNECTING)

    async def backend(self) -> LiveBackend:
        """Return the cluster's backend; open it if it is not open. Raises `CockpitError`; the next call tries again."""
        # One at a time: the watching task and a question of the user must not open two connections to one cluster.
        async with self._lock:
            if self._open_cluster is None:
                try:
                    self._open_cluster = await self._opening()
                except CockpitError as error:
                    self._connection = Connection(Phase.STALE, str(error))
                    raise
            return self._open_cluster.backend

    @property
    def capabilities(self) -> Capabilities:
        """What the cluster can do; nothing is known to be absent before it is open."""
        return self._open_cluster.backend.capabilities if self._open_cluster is not None else Capabilities()

    @property
    def words(self) -> Words:
        """Translation of ids, names and times; a cluster with another clock (demo, snapshot) is shown in this one's."""
        shift = self._now() - self._open_cluster.now() if self._open_cluster is not None else 0
        # Two readings of one clock may differ by some milliseconds, which are no shift.
        return Words(self.number, self.name, shift if abs(shift) > 1000 else 0)

    @property
    def answers(self) -> bool:
        return self._connection.phase is Phase.CONNECTED

    def row(self) -> ClusterRow:
        """Return the cluster's row for the view of clusters."""
        state = _STATES[self._connection.phase]
        if state is ClusterState.LIVE and self._open_cluster is not None and self._open_cluster.still:
            state = ClusterState.STILL
        return ClusterRow(
            name=self.name,
            way=self.way,
            state=state,
            reason=self._connection.reason,
            heard_at=self._received_at(state),
            overview=self.overview,
        )

    def _received_at(self, state: ClusterState) -> Millis | None:
        """Return when the data shown was received; a cluster that answers with another clock: just now."""
        if self._open_cluster is None:
            return None
        if state is ClusterState.STILL:
            return self._open_cluster.now()
        # `good_at` is by the member's clock, which is of no use as an age when that clock is another one.
        good, own = self._connection.good_at, self.words.shift_ms == 0
        if state is ClusterState.LIVE:
            return good if good is not None and own else self._now()
        return good

    def note_no_answer(self, reason: str) -> None:
        """Note that the cluster did not answer a question; a watched one notes it by itself."""
        # The first reason says more than a later time-out.
        if self._connection.phase is not Phase.STALE:
            self._connection = replace(self._connection, phase=Phase.STALE, reason=reason)

    async def look(self) -> None:
        """Ask for the overview once; `row` shows whether it came."""
        with suppress(CockpitError):
            backend = await self.backend()
            await self._fetch_overview(backend)

    async def _fetch_overview(self, backend: LiveBackend) -> None:
        """Store the overview and the state of the connection. Raises `CockpitError`."""
        try:
            self.overview = await backend.overview()
        except RequestRefused:
            # A refusal is an answer: the cluster can be reached.
            raise
        except CockpitError as error:
            self._connection = replace(self._connection, phase=Phase.STALE, reason=str(error))
            raise
        connection = backend.connection
        good = connection.good_at if connection.good_at is not None else self._now()
        self._connection = Connection(Phase.CONNECTED, good_at=good)

    async def follow(self, changed: Callable[[JobsDelta], None]) -> None:
        """Watch the cluster. Never ends.

        Calls `changed` with each change of its jobs, and with an empty change when it stops or starts to answer.
        """
        while True:
            before = self._connection
            try:
                backend = await self.backend()
            except CockpitError:
                self._report_phase(before, changed)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            # None of the three ends: live backends wait out every loss.
            async with asyncio.TaskGroup() as watching:
                watching.create_task(self._follow_jobs(backend, changed))
                watching.create_task(self._follow_figures(backend))
                watching.create_task(self._follow_connection(backend, changed))

    async def _follow_jobs(self, backend: LiveBackend, changed: Callable[[JobsDelta], None]) -> None:
        async for delta in backend.watch_jobs():
            rows = tuple(self.in_fleet(delta.changed))
            removed = tuple(member_id(self.number, job) for job in delta.removed)
            self.rows.update((row.id, row) for row in rows)
            for job in removed:
                self.rows.pop(job, None)
            changed(JobsDelta(rows, removed, delta.version, delta.loaded))

    async def _follow_figures(self, backend: LiveBackend) -> None:
        async for overview in backend.overviews():
            self.overview = overview

    async def _follow_connection(self, backend: LiveBackend, changed: Callable[[JobsDelta], None]) -> None:
        async for connection in backend.connections():
            before, self._connection = self._connection, connection
            self._report_phase(before, changed)

    def _report_phase(self, before: Connection, changed: Callable[[JobsDelta], None]) -> None:
        if self._connection.phase is not before.phase:
            # Only the phase: the reason of a silent member may change with every attempt, and each change would redraw
            # the lists.
            changed(JobsDelta((), (), 0))

    def in_fleet(self, rows: Iterable[JobRow]) -> Iterable[JobRow]:
        """Translate rows, and add the name of this cluster to each."""
        words = self.words
        for row in rows:
            translated = in_fleet(row, words)
            # A member may be a fleet itself, whose rows name its own members.
            inner = tuple(f"{self.name}/{each}" for each in row.clusters) or (self.name,)
            # A tuple of plain numbers: `in_fleet` recognises ids by their types only.
            first = row.component
            component = (member_id(self.number, first[0]), first[1]) if first is not None else None
            yield replace(translated, clusters=inner, component=component)

    async def close(self) -> None:
        if self._open_cluster is not None:
            await self._open_cluster.close()


_STATES = {
    Phase.CONNECTING: ClusterState.CONNECTING,
    Phase.CONNECTED: ClusterState.LIVE,
    Phase.STALE: ClusterState.SILENT,
}
