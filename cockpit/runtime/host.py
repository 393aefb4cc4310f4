"""The one loop: an input is decided on, journalled, applied, and its effects run. Local, demo and replay are this host
with another clock, journal and executor.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from cockpit.engine import decide, scripts, workers
from cockpit.engine.dependencies import consequences
from cockpit.engine.due import due
from cockpit.engine.effects import RecordEnded
from cockpit.engine.invariants import violations
from cockpit.engine.nodes import prechecks, reclaiming, service
from cockpit.engine.ports import Executor
from cockpit.engine.prediction import remember
from cockpit.engine.workers import may_begin_to_grow
from cockpit.errors import StoreError
from cockpit.model import events
from cockpit.model.events import EventBody, EventRecord
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal
from cockpit.model.requests import KeptAnswer
from cockpit.runtime.effects import EffectRunner
from cockpit.runtime.event_effects import MOVES_CONTAINERS, RECONSIDERED_AFTER
from cockpit.runtime.faultlog import FaultLog
from cockpit.runtime.ledger import RETRY_MS, Ledger
from cockpit.runtime.pass_runner import planned
from cockpit.runtime.reason_history import ReasonHistory
from cockpit.runtime.requests import repeated
from cockpit.runtime.tasks import Tasks
from cockpit.runtime.troubles import clock_trouble, given_up
from cockpit.sched.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cockpit.engine.machine import Machine
    from cockpit.engine.ports import Journal, Observer
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.ids import JobId, NodeName, ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.staging import Progress, StagedCopy
    from cockpit.model.usage import Used
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal
    from cockpit.sched.forecast.history import History
    from cockpit.sched.plan import Plan

HOUR_MS = 3_600_000
RESTING_TASKS = 4
"""Of a host at rest: scheduling, timers, and the two that the timers wait for."""


Decided = Sequence[events.EventBody] | Refusal


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the host does by setting."""

    hold_seconds: int = decide.DEFAULT_HOLD_SECONDS
    keep_history_ms: int = 90 * 24 * HOUR_MS
    check_invariants: bool = False
    policy: Policy = Policy()


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """Who causes something, and how its answer is remembered."""

    actor: str
    origin: str
    request: str = ""
    op: str = ""
    digest: bytes = b""
    """What the request asked, for `KeptAnswer`."""
    durable: bool = False
    """On the disk before anybody is told."""


class ContainerRuntime(Executor, Protocol):
    """An executor whose containers can be entered."""

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        """Raises `RequestRefused` where there is nothing to enter."""
        ...

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        """What has been measured of a replica whose container is there; None: nothing."""
        ...

    def staging(self, replica: ReplicaId) -> Progress | None:
        """How far the copies are that are being made for it; None: none are."""
        ...

    async def copies(self) -> list[StagedCopy]:
        """What is staged here, and what is being."""
        ...

    async def remove_copy(self, key: str) -> bool:
        """False where somebody uses it, or it is being made."""
        ...


class InvariantBroken(AssertionError):
    """The engine's promises do not hold: it decides nothing more rather than going on wrongly."""


class Host:
    """Owns the machine. Everything that changes it goes through `act`."""

    def __init__(
        self,
        machine: Machine,
        journal: Journal,
        executor_for: Callable[[Observer], ContainerRuntime],
        clock: Timekeeper,
        settings: Settings,
    ) -> None:
        self.machine = machine
        self.journal = journal
        self.executor = executor_for(self)
        self.clock = clock
        self.settings = settings
        self.plan: Plan | None = None
        """Of the last scheduling cycle: where reasons come from."""
        self.waited = ReasonHistory()
        self.faults = FaultLog()
        """Jobs that a defect keeps from being judged or foretold."""
        self.history: History | None = None
        """How jobs ran, once somebody has asked for a prediction."""
        self.given_up: Refusal | None = None
        """Set once the engine's promises do not hold: what every further act is told."""
        self.changed = asyncio.Condition()
        """Notified after every change of the machine or the plan."""
        self._again_at: Millis | None = None
        """When time alone may let something start."""
        self._reminder: tuple[Millis, Callable[[], Coroutine[Any, Any, None]]] | None = None
        self._tasks = Tasks()
        self._schedule = asyncio.Event()
        self._rearm = asyncio.Event()
        self._effects = EffectRunner(self.executor, self._tasks)
        self._ledger = Ledger(journal, machine, clock, settings.keep_history_ms, self._rearm.set)

    async def start(self) -> None:
        """Begin scheduling and timing. What was running before must have been adopted by `recover` first."""
        self._tasks.start(self._schedule_forever(), "scheduling")
        self._tasks.start(self._time_forever(), "timers")
        self._schedule.set()

    async def stop(self) -> None:
        """Stop deciding, write a snapshot. Containers go on."""
        async with self._ledger.turn():
            await self._tasks.cancel_all()
            if self.given_up is None:
                await self._ledger.close()

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong just now, a sentence each; a person sees it in `engine status`."""
        contradiction = self.given_up.message if self.given_up is not None else ""
        troubles = (contradiction, *self._ledger.troubles, clock_trouble(self.clock.offset_millis()))
        troubles += self.faults.sentences(self.machine.queue)
        return tuple(filter(None, troubles))

    def note_faults(self, faults: Mapping[JobId, Exception]) -> None:
        """Log the defects that kept jobs from being judged, and have the rows of these jobs tell it."""
        self.machine.touched.update(self.faults.note(faults, self.machine.queue))

    @property
    def resting(self) -> bool:
        """Started, and nothing under way: what comes next comes from the clock, the executor or a request."""
        return len(self._tasks) == RESTING_TASKS and not (self._schedule.is_set() or self._rearm.is_set())

    @property
    def reminded(self) -> bool:
        """Whether there is a moment that `remind` was told of and that has not come yet."""
        return self._reminder is not None

    def remind(self, at: Millis, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin `work` at this moment, beside everything else; it takes the place of what was to begin before."""
        self._reminder = (at, work)
        self._rearm.set()

    async def act(
        self,
        decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]],
        act: Act,
        answer: Callable[[Sequence[EventRecord]], bytes] | None = None,
    ) -> bytes | Refusal:
        """Decide, journal, apply, and set the effects going; then `answer` of the records, or the answer that this
        request id was given before. Without `answer` nothing is remembered: every request is decided on anew. Raises
        `StoreError`, and then nothing has happened. What the journal has is applied even if the asker goes away
        meanwhile.
        """
        return await self._tasks.complete(self._act(decision, act, answer), "act")

    async def _act(
        self,
        decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]],
        act: Act,
        answer: Callable[[Sequence[EventRecord]], bytes] | None,
    ) -> bytes | Refusal:
        async with self._ledger.turn():
            known = await self._ledger.answer(act.request) if answer is not None else None
            if known is not None:
                return repeated(known, act.digest)
            if self.given_up is not None:
                return self.given_up
            now = self.clock.now()
            decided = decision(self.machine, now)
            if isinstance(decided, Awaitable):
                decided = await decided
            if isinstance(decided, Refusal):
                return decided
            decided = [*decided, *consequences(self.machine, decided)]
            records = self._records(decided, act, now)
            answered = answer(records) if answer is not None else b""
            to_remember = bool(act.request) and answer is not None
            if not records and not to_remember:
                return answered
            remembered = KeptAnswer(act.request, answered, act.op, act.digest) if to_remember else None
            durable = act.durable or any(isinstance(body, MOVES_CONTAINERS) for body in decided)
            await self._ledger.append(records, durable=durable, answer=remembered)
            self._apply_or_give_up(records)
        await self._tell()
        return answered

    def replica_staged(self, replica: ReplicaId) -> None:
        """The executor has copied what the replica needs."""
        self._observe(lambda machine, _: decide.replica_staged(machine, replica), f"copies of {replica}")

    def staging_moved(self, replica: ReplicaId) -> None:
        """How far its copies are is no event, and shown all the same."""
        if replica.job in self.machine.state.jobs:
            self.machine.touched.add(replica.job)
            self._tasks.start(self._tell(), "progress of copies")

    def disk_filled(self, because: str) -> None:
        """The disk for copies is too full, or (nothing said) not any more."""
        self._observe(lambda machine, _: service.disk_filled(machine, because), "disk for copies")

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        """The executor saw a command start."""
        self._observe(lambda machine, _: decide.replica_started(machine, replica, limits), f"start of {replica}")

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: Used | None = None) -> None:
        """The executor saw the last process of a replica disappear."""
        hold = self.settings.hold_seconds
        self._observe(
            lambda machine, now: decide.replica_ended(machine, replica, exit_status, now, hold, used),
            f"end of {replica}",
        )

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        """The executor found nothing wrong with the nodes of the replica's attempt."""
        self._observe(lambda machine, _: prechecks.passed(machine, replica, found), f"passed precheck of {replica}")

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None:
        """The executor found that one of them lacks what it promised."""
        self._observe(
            lambda machine, _: prechecks.failed(machine, replica, node, because), f"failed precheck of {replica}"
        )

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        """The executor could not prepare the replica's node."""
        self._observe(
            lambda machine, now: scripts.prolog_failed(machine, replica, because, now), f"failed prolog of {replica}"
        )

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        """The executor has not heard of a worker for longer than it was asked to wait."""
        self._observe(lambda machine, now: workers.silent(machine, replica, silent_ms, now), f"silence of {replica}")

    def node_pressed(self, node: NodeName) -> None:
        """The executor sees that there is too little memory for all on the node."""
        self._observe(lambda machine, now: reclaiming.pressed(machine, node, now), f"pressure on {node}")

    def epilog_failed(self, node: NodeName, because: str) -> None:
        """The executor could not tidy the node up."""
        self._observe(lambda machine, _: scripts.epilog_failed(machine, node, because), f"failed epilog on {node}")

    async def ended_job(self, job: JobId) -> Job | None:
        """A job that has left the live state."""
        return await self.journal.ended_job(job)

    def run_effects(self, effects: Sequence[Any]) -> None:
        """Set effects going: those of recovery, or of events just applied."""
        for effect in effects:
            if isinstance(effect, RecordEnded):
                self._ledger.ended(effect.job)
                self._rearm.set()
            else:
                self._effects.run(effect)

    async def settled(self, replica: ReplicaId, seconds: float) -> None:
        """Wait until the effects of what has happened to the replica have been carried out, or for so long."""
        await self._effects.settled(replica, seconds)

    def _records(self, bodies: Sequence[EventBody], act: Act, now: Millis) -> list[EventRecord]:
        first = self.machine.state.seq + 1
        return [
            EventRecord(seq=seq, at=now, actor=act.actor, origin=act.origin, request=act.request, body=body)
            for seq, body in enumerate(bodies, first)
        ]

    def _apply_or_give_up(self, records: Sequence[EventRecord]) -> None:
        try:
            self._apply(records)
        except Exception as error:  # noqa: BLE001 - whatever it is: the journal has what the state has not, or it is wrong
            traceback.print_exception(error)
            self.given_up = given_up(error)
        self._rearm.set()

    def _apply(self, records: Sequence[EventRecord]) -> None:
        for record in records:
            effects = self.machine.handle(record)
            if self.history is not None:
                remember(self.history, record.body, self.machine.state.jobs)
            if self.settings.check_invariants and (broken := violations(self.machine, record.body)):
                raise InvariantBroken("; ".join(broken))
            self.run_effects(effects)
            if isinstance(record.body, RECONSIDERED_AFTER) or may_begin_to_grow(self.machine, record.body):
                self._schedule.set()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _observe(self, decision: Callable[[Machine, Millis], Decided], what: str) -> None:
        self._tasks.start(self.insist(decision, Act(actor="engine", origin="runtime")), what)

    async def insist(self, decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]], act: Act) -> None:
        """An observation is true whether or not the journal takes it just now: try until it does."""
        while True:
            try:
                await self.act(decision, act)
            except StoreError:
                await self.clock.wait_until(Millis(self.clock.now() + RETRY_MS))
            else:
                return

    async def _schedule_forever(self) -> None:
        while self.given_up is None:
            await self._schedule.wait()
            self._schedule.clear()
            await self.insist(self._one_cycle, Act(actor="engine", origin="scheduler"))
            await self._tell()

    async def _one_cycle(self, machine: Machine, now: Millis) -> Sequence[EventBody]:
        policy = replace(self.settings.policy, backfill=machine.state.cluster.backfill)
        if self.plan is not None:  # what was met while rows were made of it
            self.note_faults(self.plan.scheduling_pass.faults)
        self.plan = await planned(machine.snapshot(now), self.plan, policy)
        self.waited.look(self.plan, machine.queue, machine.state.jobs, now)
        self.note_faults(self.plan.scheduling_pass.faults)
        self._again_at = self.plan.next_at if self.plan.next_at is not None and self.plan.next_at > now else None
        self._rearm.set()
        return decide.placed(machine, self.plan)

    async def _time_forever(self) -> None:
        while self.given_up is None:
            self._rearm.clear()
            await self.insist(due, Act(actor="engine", origin="timer"))
            await self._keep_house()
            if self._again_at is not None and self._again_at <= self.clock.now():
                self._again_at = None
                self._schedule.set()
            if self._reminder is not None and self._reminder[0] <= self.clock.now():
                (_, work), self._reminder = self._reminder, None
                self._tasks.start(work(), "reminder")
            moments = (self.machine.next_at, self._again_at, self._reminder[0] if self._reminder is not None else None)
            await self._wait_until(min((at for at in moments if at is not None), default=None))

    async def _wait_until(self, at: Millis | None) -> None:
        """Until the moment, an event that may have moved it, or an hour (for the house-keeping)."""
        latest = self.clock.now() + (RETRY_MS if self._ledger.busy else HOUR_MS)
        moment = self._tasks.start(self.clock.wait_until(Millis(min(at or latest, latest))), "next moment")
        rearmed = self._tasks.start(self._rearm.wait(), "rearming")
        try:
            await asyncio.wait([moment, rearmed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            moment.cancel()
            rearmed.cancel()

    async def _keep_house(self) -> None:
        with suppress(StoreError):  # it is among the troubles, and tried again
            await self._ledger.keep()
