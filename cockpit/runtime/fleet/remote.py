"""A member that the fleet reaches over a link, which may break at any moment: looks at it and tells it what to do.

`engine.fleet.courier` decides. One round is: look, record what follows, look up what the look lacks, tell. A link that
breaks ends the round; the next one begins with a look again, so that no answer is ever assumed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from cockpit.engine.fleet.courier import Cancel, Look, Release, Step, Submit, missing, reported, steps
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model import events
from cockpit.model.attempt import ExitStatus
from cockpit.model.fleet import node_in
from cockpit.model.fleetorder import Order, PartSeen, PartState
from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation, Node, NodeState, first_cards
from cockpit.runtime.host import Act
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, ShellRequest
    from cockpit.model.events import EventBody, EventRecord
    from cockpit.model.fleetrow import MemberObject
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.host import Host

T = TypeVar("T")
LOOK_MS = 2_000
"""Time between two rounds while nothing happens."""
SILENT_MS = 10_000
"""Time without an answer after which no further jobs are bound to the member."""
BY_LINK = Act(actor="engine", origin="runtime", durable=True)


class MemberLink(Protocol):
    """The way to a cluster that is a member of the fleet. Every call may raise `CockpitError`: `RequestRefused` where
    the cluster refuses, any other where it is not known whether the request took effect."""

    async def parts(self, fleet: str) -> Sequence[PartSeen]:
        """Return all jobs of the member that carry an order of this fleet and have not ended."""
        ...

    async def find(self, own: str) -> PartSeen | None:
        """Return one job of the member by its own id; None: the member has no record of it."""
        ...

    async def submit(self, spec: JobSpec) -> None:
        """Submit a part, which is held."""
        ...

    async def release(self, own: str) -> None: ...

    async def cancel(self, own: str) -> None: ...

    async def nodes(self) -> Sequence[NodeRow]: ...

    async def own_object(self, own: str) -> MemberObject:
        """Return the member's complete object of one of its jobs."""
        ...

    async def logs(self, own: str, request: LogRequest) -> LogChunk:
        """Answer about a log of one of the member's jobs. `request` has the member's ranks; its job is not read."""
        ...

    async def search_log(self, own: str, request: LogSearch) -> LogMatches: ...

    async def events(self, own: str, after: int, limit: int) -> Sequence[EventRecord]: ...

    async def open_shell(self, own: str, request: ShellRequest) -> MemberShell: ...


class MemberShell(Protocol):
    """A shell or command in a container of the member, by descriptors of this process."""

    terminal_fd: int | None
    pipe_fds: tuple[int, int, int] | None
    control_fd: int
    """Becomes readable when the shell has ended; closing it ends the shell."""

    def exit_code(self) -> int:
        """Block until the shell has ended and return its exit code."""
        ...


class RemoteMember:
    """The fleet's side of one link."""

    def __init__(self, name: str, link: MemberLink, fleet_id: str, clock: Timekeeper) -> None:
        self.name = name
        self._link, self._fleet_id, self._clock = link, fleet_id, clock
        self._wanted = asyncio.Event()
        self._timers = Tasks()
        self.seen: Sequence[PartSeen] = ()
        """The jobs that the last look found."""
        self.heard_at: Millis | None = None
        """When the member last answered; None: never."""
        self.silence = ""
        """Why it does not answer at present, as a sentence; empty: it does."""
        self.refusals: dict[Order, str] = {}
        """Why the member refuses a part, by its order."""
        self._nodes: tuple[Node, ...] = ()
        self.rounds = 0
        """Rounds that ended, also those in which the link broke."""

    def wake(self) -> None:
        """Begin the next round at once: something was decided that the member should be told."""
        self._wanted.set()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The member's nodes by their names in the fleet. None takes further jobs while the member is silent."""
        if not self.is_silent:
            return self._nodes
        because = f"{self.name} does not answer: {self.silence}"
        return tuple(replace(node, state=NodeState.DRAINED, state_reason=because) for node in self._nodes)

    @property
    def is_silent(self) -> bool:
        """Whether the member has not answered for so long that no more jobs are bound to it."""
        heard = self.heard_at
        return bool(self.silence) and (heard is None or self._clock.now() - heard >= SILENT_MS)

    async def own_object(self, own: str) -> MemberObject:
        """Return the member's complete object of one of its jobs. Raises `CockpitError`."""
        return replace(await self.ask(lambda link: link.own_object(own)), cluster=self.name)

    async def ask(self, question: Callable[[MemberLink], Awaitable[T]]) -> T:
        """Return the member's answer. Raises `RequestRefused` where it refuses, else `Unreachable` with its name."""
        try:
            return await question(self._link)
        except RequestRefused:
            raise
        except CockpitError as error:
            raise Unreachable(f"{self.name} does not answer: {error}") from error

    async def follow(self, fleet: Host, changed: Callable[[], None]) -> None:
        """Repeat rounds. `changed` is called after each, when nodes or other jobs may have changed. Never ends."""
        while True:
            self._wanted.clear()
            await self.round(fleet)
            changed()
            await self._pause()

    async def _pause(self) -> None:
        """Wait until the next round is due, or something was decided."""
        await self._timers.cancel_all()
        self._timers.start(self._wake_later(), f"next look at {self.name}")
        await self._wanted.wait()

    async def _wake_later(self) -> None:
        await self._clock.wait_until(Millis(self._clock.now() + LOOK_MS))
        self.wake()

    async def stop(self) -> None:
        """Stop waiting for the next round."""
        await self._timers.cancel_all()

    async def round(self, fleet: Host) -> None:
        """Look at the member once and tell it what follows; a link that breaks ends the round."""
        try:
            await self._round(fleet)
        except CockpitError as error:
            self.silence = str(error)
        else:
            self.silence, self.heard_at = "", self._clock.now()
        self.rounds += 1

    async def _round(self, fleet: Host) -> None:
        look = Look(self._fleet_id, self.name, list(await self._link.parts(self._fleet_id)))
        # Which parts are released is read after the look: one that is released later may be missing in it.
        lost = [await self._looked_up(own) for own in missing(fleet.machine, look)]
        look = look._replace(seen=[*look.seen, *lost])
        rows = await self._link.nodes()
        self.seen, self._nodes = look.seen, tuple(_fleet_node(self.name, row) for row in rows)
        await fleet.act(lambda machine, _: _others(machine, self.name, rows, look.seen), BY_LINK)
        while await self._record(fleet, look):
            pass
        for step in steps(fleet.machine, look):
            await self._tell(step)

    async def _looked_up(self, own: str) -> PartSeen:
        found = await self._link.find(own)
        if found is not None:
            return found
        lost = ExitStatus(lost=f"{self.name} has no record of {own} any more")
        return PartSeen(order=Order(self._fleet_id, JobId(0), 0), own=own, state=PartState.ENDED, exit=lost)

    async def _record(self, fleet: Host, look: Look) -> bool:
        """Record the next events that follow from the look; return whether there were any."""
        decided: list[EventBody] = []

        def decide(machine: Machine, now: Millis) -> list[EventBody]:
            decided[:] = reported(machine, look, now, fleet.settings.hold_seconds)
            return decided

        await fleet.act(decide, BY_LINK)
        return bool(decided)

    async def _tell(self, step: Step) -> None:
        try:
            match step:
                case Submit():
                    await self._link.submit(step.spec)
                case Release():
                    await self._link.release(step.own)
                case Cancel():
                    await self._link.cancel(step.own)
        except RequestRefused as refused:
            # An answer: the next look shows what the member has. A part that exists already was ordered before.
            if isinstance(step, Submit):
                self.refusals[step.order] = refused.refusal.message
        else:
            if isinstance(step, Submit):
                self.refusals.pop(step.order, None)


def _fleet_node(member: str, row: NodeRow) -> Node:
    return replace(row.node, name=node_in(member, row.node.name), drained_by="")


def _others(fleet: Machine, member: str, rows: Iterable[NodeRow], seen: Sequence[PartSeen]) -> list[EventBody]:
    """Return the event that the resources held by the member's own jobs have changed; none if they have not.

    What the fleet's parts hold does not count: it is bound to the member already.
    """
    ours = _held_by_parts(fleet, member, seen)
    placements = (_rest(member, row, ours.get(row.node.name, [])) for row in rows)
    held = tuple((each,) for each in placements if each.cpus or each.memory_mib or each.slices)
    return [] if fleet.state.others.get(member, ()) == held else [events.OthersHeld(member, held)]


def _held_by_parts(fleet: Machine, member: str, seen: Iterable[PartSeen]) -> dict[str, list[Allocation]]:
    """Return what the fleet's parts hold on each of the member's nodes, by the node's own name."""
    held: dict[str, list[Allocation]] = {}
    for each in seen:
        job = fleet.state.jobs.get(each.order.job)
        attempt = job.attempt if job is not None else None
        if each.state is not PartState.RUNNING or attempt is None or attempt.number != each.order.attempt:
            continue
        bound = [part for part, name in zip(attempt.placement, attempt.members, strict=True) if name == member]
        for node, part in zip(each.nodes, bound, strict=False):
            held.setdefault(node, []).append(part)
    return held


def _rest(member: str, row: NodeRow, ours: Iterable[Allocation]) -> Allocation:
    """Return what is held on a node beside our parts; which cards that are is not known."""
    parts = list(ours)
    return Allocation(
        0,
        node_in(member, row.node.name),
        max(0, row.used_cpus - sum(each.cpus for each in parts)),
        max(0, row.used_memory_mib - sum(each.memory_mib for each in parts)),
        first_cards(max(0, row.used_card_milli - sum(each.card_milli for each in parts))),
    )
