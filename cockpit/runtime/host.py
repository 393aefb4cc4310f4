"""Run the engine's one loop: decide on an input, journal the events, apply them, and run their effects.

The local engine, the demo and trace replay are all this host, with different clocks, journals and executors.

Each change of the cluster's state goes through these steps (`Host.act`, numbered there too):

1. Wait for the write lock: there is one writer, so a decision never meets a half-changed state.
2. Return the stored answer if this request id was answered before; refuse if the engine has given up.
3. Decide: a function of the machine and the time returns events, or a refusal.
4. Append the events to the journal, together with the answer that a repeat of the request gets.
5. Apply the events to the machine, and start the effects that they return.
6. Wake everything that waits for a change.

Two tasks run beside the requests. The scheduling task runs a pass whenever an event could let a job start; the timer
task sleeps until the next moment at which time alone changes something.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from cockpit.engine import decide, faults, steps, workers
from cockpit.engine.alerting import alerts_raised
from cockpit.engine.dependencies import consequences
from cockpit.engine.due import due
from cockpit.engine.effects import RecordEnded, SendAlert
from cockpit.engine.invariants import violations
from cockpit.engine.nodes import reclaiming, service
from cockpit.engine.ports import Executor
from cockpit.engine.prediction import remember
from cockpit.engine.workers import may_begin_to_grow
from cockpit.errors import StoreError
from cockpit.model import events
from cockpit.model.events import EventBody, EventRecord
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal
from cockpit.model.requests import KeptAnswer
from cockpit.runtime.effects import MOVES_CONTAINERS, RECONSIDERED_AFTER, EffectRunner
from cockpit.runtime.ledger import RETRY_MS, Ledger
from cockpit.runtime.pass_runner import run_pass
from cockpit.runtime.reason_history import ReasonHistory
from cockpit.runtime.requests import answer_to_repeat
from cockpit.runtime.tasks import Tasks
from cockpit.runtime.troubles import FaultLog, clock_trouble, given_up
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
    from cockpit.model.steps import StepReport
    from cockpit.model.usage import ReplicaTotals
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal
    from cockpit.sched.forecast.history import History
    from cockpit.sched.plan import Plan

HOUR_MS = 3_600_000
RESTING_TASKS = 4
"""Number of tasks of an idle host: scheduling, timers, and the two tasks that the timer task waits for."""


Decided = Sequence[events.EventBody] | Refusal
"""A decision's result: the events that happen (none: nothing changes), or why the request is refused."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a host."""

    hold_seconds: int = decide.DEFAULT_HOLD_SECONDS
    """How long a failed container is held for debugging, in seconds."""
    keep_history_ms: int = 90 * 24 * HOUR_MS
    """How long events stay in the journal before they are archived, in milliseconds."""
    check_invariants: bool = False
    """Whether the engine's invariants are checked after every event; the tests do."""
    policy: Policy = Policy()
    alert_pause_ms: int = 600_000
    """The least time between two alerts of one kind about one job, in milliseconds."""


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """The cause of a change: the user and the origin, and how the answer to the request is remembered."""

    actor: str
    origin: str
    request: str = ""
    op: str = ""
    digest: bytes = b""
    """Hash of the operation and its arguments, stored in `KeptAnswer` to detect a reused request id."""
    durable: bool = False
    """Whether the events must be on the disk before the request is answered."""


class ContainerRuntime(Executor, Protocol):
    """An executor that can also open shells in containers, report their usage and list staged copies."""

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        """Start `command` in the replica's container. Raises `RequestRefused` if there is no container."""
        ...

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        """Return the measured usage of a replica that has a container; None if nothing was measured yet."""
        ...

    def staging(self, replica: ReplicaId) -> Progress | None:
        """Return the progress of the copies being made for the replica; None if none are being made."""
        ...

    async def copies(self) -> list[StagedCopy]:
        """List the staged copies on this machine, finished and in progress."""
        ...

    async def remove_copy(self, key: str) -> bool:
        """Remove a staged copy. Returns False if a job uses it or it is still being made."""
        ...


class InvariantBroken(AssertionError):
    """An invariant of the engine is violated. The engine then refuses every change instead of making wrong ones."""


class Host:
    """Owns the engine's state machine. Every change to it goes through `act`."""

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
        # The executor reports what happens to containers to this host, which therefore comes first.
        self.executor = executor_for(self)
        self.clock = clock
        self.settings = settings
        self.plan: Plan | None = None
        """The plan of the last scheduling pass; jobs' pending reasons come from it."""
        self.waited = ReasonHistory()
        self.pass_ms: float | None = None
        """The duration of the last scheduling pass in milliseconds; None: there was none yet."""
        self.steps = steps.StepLog()
        """The last reports of elastic jobs' workers about their training."""
        self.faults = FaultLog()
        """The jobs that a defect in cockpit keeps from being scheduled or predicted."""
        self.history: History | None = None
        """Past run times, for predictions; read when the first prediction is requested."""
        self.given_up: Refusal | None = None
        """The refusal of every further change, set when an invariant is violated."""
        self.send_alert: Callable[[SendAlert], None] = lambda _: None
        """Takes the alerts that are raised, and returns at once; by default no one gets them."""
        self._stopped = False
        self.changed = asyncio.Condition()
        """Notified after every change of the machine or the plan."""
        self._again_at: Millis | None = None
        """The next moment at which a job may start without any event, for example when a reservation ends."""
        self._reminder: tuple[Millis, Callable[[], Coroutine[Any, Any, None]]] | None = None
        """The one task scheduled by `remind`, and when it starts."""
        self._tasks = Tasks()
        self._schedule = asyncio.Event()
        """Set while a scheduling pass is due."""
        self._rearm = asyncio.Event()
        """Set when the timer task may have to wake before the moment for which it sleeps."""
        self._effects = EffectRunner(self.executor, self._tasks)
        self._ledger = Ledger(journal, machine, clock, settings.keep_history_ms, self._rearm.set)

    async def start(self) -> None:
        """Start the scheduling and timer tasks. `recover` must have adopted the running containers before."""
        self._tasks.start(self._schedule_forever(), "scheduling")
        self._tasks.start(self._time_forever(), "timers")
        # Without any event: the queue that was loaded from the journal has no plan yet.
        self._schedule.set()

    async def stop(self) -> None:
        """Stop all tasks and write a snapshot. Containers keep running."""
        # With the write lock held, so that no change is cancelled halfway.
        async with self._ledger.turn():
            self._stopped = True
            await self._tasks.cancel_all()
            # A contradictory state must not become a snapshot: without one, the next start applies the events again.
            if self.given_up is None:
                await self._ledger.close()

    @property
    def trouble(self) -> tuple[str, ...]:
        """The current problems of the engine, one sentence each, as `engine status` shows them."""
        contradiction = self.given_up.message if self.given_up is not None else ""
        troubles = (contradiction, *self._ledger.troubles, clock_trouble(self.clock.offset_millis()))
        troubles += self.faults.sentences(self.machine.queue)
        return tuple(filter(None, troubles))

    def note_faults(self, faults: Mapping[JobId, Exception]) -> None:
        """Log the defects that kept jobs from being scheduled or predicted, and refresh these jobs' rows."""
        self.machine.touched.update(self.faults.note(faults, self.machine.queue))

    @property
    def resting(self) -> bool:
        """Whether the host is idle: only the clock, the executor or a request can cause the next change."""
        return len(self._tasks) == RESTING_TASKS and not (self._schedule.is_set() or self._rearm.is_set())

    @property
    def reminded(self) -> bool:
        """Whether a task set with `remind` has not started yet."""
        return self._reminder is not None

    def remind(self, at: Millis, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start `work` as a task at this moment. It replaces the task of an earlier call that has not started yet."""
        self._reminder = (at, work)
        self._rearm.set()

    async def act(
        self,
        decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]],
        act: Act,
        answer: Callable[[Sequence[EventRecord]], bytes] | None = None,
    ) -> bytes | Refusal:
        """Make one change: decide, journal the events, apply them, and start their effects.

        Returns `answer(records)`, or the stored answer if this request id was answered before. Without `answer`
        nothing is stored, and a repeated request is decided again. Raises `StoreError` if the journal cannot be
        written; then nothing has changed. Cancelling the caller does not interrupt the change: events in the journal
        are always applied.
        """
        return await self._tasks.complete(self._act(decision, act, answer), "act")

    async def _act(
        self,
        decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]],
        act: Act,
        answer: Callable[[Sequence[EventRecord]], bytes] | None,
    ) -> bytes | Refusal:
        async with self._ledger.turn():  # 1: one writer at a time
            # Containers report to the last moment. What comes after the snapshot is left to the next engine, which
            # looks at each container again; changes that wait here are cancelled like all other tasks.
            if self._stopped:
                raise asyncio.CancelledError
            known = await self._ledger.answer(act.request) if answer is not None else None  # 2: a repeated request
            if known is not None:
                return answer_to_repeat(known, act.digest)
            # After the stored answers, which remain true.
            if self.given_up is not None:
                return self.given_up
            # Read under the lock, so that the times of events never decrease in the order of their numbers.
            now = self.clock.now()
            decided = decision(self.machine, now)  # 3: a scheduling pass is awaitable, all other decisions are not
            if isinstance(decided, Awaitable):
                decided = await decided
            if isinstance(decided, Refusal):
                return decided
            # What follows at once, such as the release of a job that waited for another, belongs to the same change: a
            # crash must not come between the two.
            decided = [*decided, *consequences(self.machine, decided)]
            decided += alerts_raised(self.machine, decided, now, self.settings.alert_pause_ms)
            records = self._records(decided, act, now)
            encoded = answer(records) if answer is not None else b""
            to_remember = bool(act.request) and answer is not None
            # An empty decision is still written if a repeat of its request must get the same answer.
            if not records and not to_remember:
                return encoded
            # 4: events and answer in one transaction, or a crash between them would let a repeat act twice.
            remembered = KeptAnswer(act.request, encoded, act.op, act.digest) if to_remember else None
            durable = act.durable or any(isinstance(body, MOVES_CONTAINERS) for body in decided)
            await self._ledger.append(records, durable=durable, answer=remembered)
            self._apply_or_give_up(records)  # 5
        await self._notify_changed()  # 6: after the lock is released, since waiters may want to act at once
        return encoded

    def replica_staged(self, replica: ReplicaId) -> None:
        """Record that the executor has made the copies that the replica needs."""
        self._observe(lambda machine, _: decide.replica_staged(machine, replica), f"copies of {replica}")

    def staging_moved(self, replica: ReplicaId) -> None:
        """Refresh the job's row: the progress of its copies is shown, but is not an event."""
        # The job may have been deleted while its copies were being cancelled.
        if replica.job in self.machine.state.jobs:
            self.machine.touched.add(replica.job)
            self._tasks.start(self._notify_changed(), "progress of copies")

    def disk_filled(self, because: str) -> None:
        """Record that the disk for staged copies is too full, or (empty `because`) has free space again."""
        self._observe(lambda machine, _: service.disk_filled(machine, because), "disk for copies")

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        """Record that the replica's command has started; `limits` describes the limits that hold for it."""
        self._observe(lambda machine, _: decide.replica_started(machine, replica, limits), f"start of {replica}")

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: ReplicaTotals | None = None) -> None:
        """Record that the replica's last process has ended; `used` is its measured usage."""
        hold, reported = self.settings.hold_seconds, self.steps.take(replica)
        self._observe(
            lambda machine, now: decide.replica_ended(machine, replica, exit_status, now, hold, used, reported),
            f"end of {replica}",
        )

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        """Record that the nodes of the replica's attempt passed their check; `found` describes the result."""
        self._observe(
            lambda machine, _: faults.precheck_passed(machine, replica, found), f"passed precheck of {replica}"
        )

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None:
        """Record that a node of the replica's attempt failed its check, and why."""
        self._observe(
            lambda machine, now: faults.precheck_failed(machine, replica, node, because, now),
            f"failed precheck of {replica}",
        )

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        """Record that the prolog failed on the replica's node, and why."""
        self._observe(
            lambda machine, now: faults.prolog_failed(machine, replica, because, now), f"failed prolog of {replica}"
        )

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        """Record that a worker has sent no heartbeat for `silent_ms`; None: it has never sent one."""
        self._observe(
            lambda machine, now: workers.handle_silent_worker(machine, replica, silent_ms, now), f"silence of {replica}"
        )

    def worker_stepped(self, replica: ReplicaId, report: StepReport) -> None:
        """Note how far a worker's training is, and record how it went on after an interruption, if that says it."""
        self.steps.note(replica, report)
        # Asked before the write lock is taken, since most reports, one a second from each worker, lead to no event.
        if steps.report_steps(self.machine, self.steps, replica.job):
            self._observe(
                lambda machine, _: steps.report_steps(machine, self.steps, replica.job), f"steps of {replica}"
            )

    def node_pressed(self, node: NodeName) -> None:
        """Record that the node is short of memory."""
        self._observe(lambda machine, now: reclaiming.relieve_memory(machine, node, now), f"pressure on {node}")

    def epilog_failed(self, node: NodeName, because: str) -> None:
        """Record that the epilog failed on the node, and why."""
        self._observe(lambda machine, _: faults.epilog_failed(machine, node, because), f"failed epilog on {node}")

    async def ended_job(self, job: JobId) -> Job | None:
        """Return an ended job from accounting, or None."""
        return await self.journal.ended_job(job)

    def run_effects(self, effects: Sequence[Any]) -> None:
        """Start effects: those of recovery, or of events just applied."""
        for effect in effects:
            if isinstance(effect, RecordEnded):
                self._ledger.ended(effect.job)
                self._rearm.set()
            elif isinstance(effect, SendAlert):
                self.send_alert(effect)
            else:
                self._effects.run(effect)

    async def settled(self, replica: ReplicaId, seconds: float) -> None:
        """Wait until the replica's pending effects have been carried out, at most `seconds`."""
        await self._effects.settled(replica, seconds)

    def _records(self, bodies: Sequence[EventBody], act: Act, now: Millis) -> list[EventRecord]:
        # Numbers have no gaps: nothing else can take the next ones, since the caller holds the write lock.
        first = self.machine.state.seq + 1
        return [
            EventRecord(seq=seq, at=now, actor=act.actor, origin=act.origin, request=act.request, body=body)
            for seq, body in enumerate(bodies, first)
        ]

    def _apply_or_give_up(self, records: Sequence[EventRecord]) -> None:
        try:
            self._apply(records)
        except Exception as error:  # noqa: BLE001 - after any error, state and journal may differ
            # The events are in the journal and cannot be taken back. Refusing further changes keeps the damage to this
            # one; a restart rebuilds the state from the journal.
            traceback.print_exception(error)
            self.given_up = given_up(error)
        # Any event may have moved the next moment at which time alone changes something.
        self._rearm.set()

    def _apply(self, records: Sequence[EventRecord]) -> None:
        for record in records:
            effects = self.machine.handle(record)
            if self.history is not None:
                remember(self.history, record.body, self.machine.state.jobs)
            if self.settings.check_invariants and (broken := violations(self.machine, record.body)):
                raise InvariantBroken("; ".join(broken))
            # After the check: a wrong event must not move containers.
            self.run_effects(effects)
            if isinstance(record.body, RECONSIDERED_AFTER) or may_begin_to_grow(self.machine, record.body):
                self._schedule.set()

    async def _notify_changed(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def _observe(self, decision: Callable[[Machine, Millis], Decided], what: str) -> None:
        # In a task: the executor calls from callbacks of the event loop, and cannot wait for the write lock.
        self._tasks.start(self.act_until_stored(decision, Act(actor="engine", origin="runtime")), what)

    async def act_until_stored(
        self, decision: Callable[[Machine, Millis], Decided | Awaitable[Decided]], act: Act
    ) -> None:
        """Make a change, and retry until the journal takes it: an observed fact is true even while the disk is full."""
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
            self._schedule.clear()  # before the pass: an event during it must lead to another one
            await self.act_until_stored(self._one_cycle, Act(actor="engine", origin="scheduler"))
            # Also after a pass without events, since the reasons of waiting jobs come from its plan.
            await self._notify_changed()

    async def _one_cycle(self, machine: Machine, now: Millis) -> Sequence[EventBody]:
        # The configuration of the cluster may have been loaded again since the last pass.
        policy = replace(self.settings.policy, backfill=machine.state.cluster.backfill)
        if self.plan is not None:  # defects that came up while rows were made from the old plan
            self.note_faults(self.plan.scheduling_pass.faults)
        # Events that happen during the pass wait for the write lock, which is held here: so the plan still fits the
        # state to which it is applied below.
        began = time.perf_counter()  # not by the host's clock, which stands still during a pass when it is virtual
        self.plan = await run_pass(machine.snapshot(now).frozen(), self.plan, policy)
        self.pass_ms = round((time.perf_counter() - began) * 1000, 3)
        self.waited.look(self.plan, machine.queue, machine.state.jobs, now)
        self.note_faults(self.plan.scheduling_pass.faults)
        # A moment that has come already would start pass after pass, without anything having changed.
        self._again_at = self.plan.next_at if self.plan.next_at is not None and self.plan.next_at > now else None
        self._rearm.set()
        return decide.carry_out_plan(machine, self.plan)

    async def _time_forever(self) -> None:
        while self.given_up is None:
            self._rearm.clear()  # first: a change during the steps below must end the sleep at the end at once
            await self.act_until_stored(due, Act(actor="engine", origin="timer"))
            await self._maintain_journal()
            # Cleared before the pass, which sets the next such moment.
            if self._again_at is not None and self._again_at <= self.clock.now():
                self._again_at = None
                self._schedule.set()
            if self._reminder is not None and self._reminder[0] <= self.clock.now():
                # Cleared first, since the work may set the next reminder.
                (_, work), self._reminder = self._reminder, None
                self._tasks.start(work(), "reminder")
            moments = (self.machine.next_at, self._again_at, self._reminder[0] if self._reminder is not None else None)
            await self._wait_until(min((at for at in moments if at is not None), default=None))

    async def _wait_until(self, at: Millis | None) -> None:
        """Sleep until the moment, an event that may have changed it, or at most an hour (for the journal)."""
        latest = self.clock.now() + (RETRY_MS if self._ledger.busy else HOUR_MS)
        moment = self._tasks.start(self.clock.wait_until(Millis(min(at or latest, latest))), "next moment")
        rearmed = self._tasks.start(self._rearm.wait(), "rearming")
        try:
            await asyncio.wait([moment, rearmed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Whichever is left over would wake later, for a sleep that has ended.
            moment.cancel()
            rearmed.cancel()

    async def _maintain_journal(self) -> None:
        with suppress(StoreError):  # `trouble` reports it, and the next round tries again
            await self._ledger.maintain()
