"""Simulates the containers of the demo: replicas start and end at virtual times by their scripts, without processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cockpit.backends.demo.loads import use_of
from cockpit.backends.demo.training import Training
from cockpit.engine.effects import SignalKind
from cockpit.errors import RequestRefused
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import Millis, ReplicaId
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from cockpit.backends.demo.sandbox import Sandboxes
    from cockpit.backends.demo.scripts import Script, Scripts
    from cockpit.engine.effects import (
        CheckNodes,
        FreezeReplica,
        KeepContainer,
        RemoveContainer,
        SignalReplica,
        StageReplica,
        StartReplica,
        ThawReplica,
        WriteWorkersFile,
    )
    from cockpit.engine.ports import Observer
    from cockpit.model.ids import JobId, NodeName
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.node import Node
    from cockpit.model.staging import StagedCopy
    from cockpit.runtime.clock import Timekeeper
    from cockpit.runtime.containers.entering import EnteredShell, Terminal

LIMITS = "none, this is a demo"
REPORT_MS = 60_000
"""The time between two reports of a training's steps."""
TERMINATED, KILLED = ExitStatus(signal=15), ExitStatus(signal=9)


class ScriptedExecutor:
    """Implements `runtime.host.ContainerRuntime` for the demo. `rooms` makes the sandboxes in which shells run."""

    def __init__(
        self, observer: Observer, clock: Timekeeper, scripts: Scripts, rooms: Sandboxes, nodes: Mapping[NodeName, Node]
    ) -> None:
        self._observer = observer
        self._nodes = nodes
        self._clock = clock
        self._scripts = scripts
        self._sandboxes = rooms
        self._tasks = Tasks()
        self._containers: dict[ReplicaId, StartReplica] = {}
        """Simulated containers: running and held ones."""
        self._ends_at: dict[ReplicaId, Millis | None] = {}
        """End of each running replica; None: it runs until it gets a signal."""
        self._remaining_ms: dict[ReplicaId, int | None] = {}
        """Remaining run time of suspended replicas, in milliseconds."""
        self._began_at: dict[ReplicaId, Millis] = {}
        """Start of each running replica."""
        self._running: dict[ReplicaId, tuple[Script, asyncio.Task[None]]] = {}
        self._trainings: dict[JobId, Training] = {}
        """The trainings of elastic jobs."""
        self._reporting: dict[JobId, asyncio.Task[None]] = {}

    async def stage(self, effect: StageReplica) -> None:
        """Report the replica as staged at once: there is nothing to copy."""
        self._observer.replica_staged(effect.replica)

    def staging(self, replica: ReplicaId) -> None:
        """Do nothing: no copy is ever under way."""

    async def copies(self) -> list[StagedCopy]:
        return []

    async def remove_copy(self, key: str) -> bool:
        """Return False: there are no copies."""
        del key
        return False

    async def start(self, effect: StartReplica) -> None:
        if effect.replica not in self._containers:
            self._containers[effect.replica] = effect
            script = self._scripts.of(effect.spec)
            self._follow(effect.replica, script, self._run(effect.replica, script))

    async def signal(self, effect: SignalReplica) -> None:
        if effect.replica not in self._running:
            return
        script, task = self._running[effect.replica]
        if effect.force is SignalKind.KILL:
            task.cancel()
            self._end(effect.replica, KILLED)
        # An early signal, and SIGTERM to a script that ignores it, change nothing: the engine has to kill such a
        # replica after its grace period.
        elif effect.force is SignalKind.TERM and script.winds_down_ms is not None:
            task.cancel()
            if effect.replica.job in self._trainings:
                self._trainings[effect.replica.job].save(self._clock.now())
            self._follow(effect.replica, script, self._end_after(effect.replica, script.winds_down_ms))

    async def check(self, effect: CheckNodes) -> None:
        """Report that the nodes are healthy."""
        self._observer.precheck_passed(effect.replica, "")

    async def freeze(self, effect: FreezeReplica) -> None:
        """Suspend the replica: note the rest of its run time and stop its timer."""
        if effect.replica in self._running and effect.replica not in self._remaining_ms:
            _, task = self._running[effect.replica]
            ends_at = self._ends_at.get(effect.replica)
            # A replica that is frozen before its command runs has no end yet, and stays until a signal ends it.
            self._remaining_ms[effect.replica] = None if ends_at is None else max(0, ends_at - self._clock.now())
            task.cancel()

    async def thaw(self, effect: ThawReplica) -> None:
        if effect.replica in self._remaining_ms:
            script, _ = self._running[effect.replica]
            self._follow(
                effect.replica, script, self._run_to_end(effect.replica, script, self._remaining_ms.pop(effect.replica))
            )

    async def write_workers_file(self, effect: WriteWorkersFile) -> None:
        """Do nothing: a simulated worker does not read the list of workers."""

    async def keep(self, effect: KeepContainer) -> None:
        """Do nothing: the sandbox of a held container is made when a user opens a shell."""

    async def remove(self, effect: RemoveContainer) -> None:
        if self._containers.pop(effect.replica, None) is not None:
            self._sandboxes.remove(effect.replica)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Start the expected replicas again; nothing outlives the process of a demo."""
        del kept
        for effect in expected:
            await self.start(effect)

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        if replica not in self._containers:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"{replica} has no container to enter"))
        # A container without a running replica exists only in a debug hold.
        kept = replica not in self._running
        return self._sandboxes.enter(self._containers[replica], command, terminal=terminal, label=label, kept=kept)

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        """Return simulated figures of the replica's use."""
        return self._use(replica)

    async def close(self) -> None:
        """Stop all timers and end every shell."""
        await self._tasks.cancel_all()
        self._sandboxes.close()

    def _follow(self, replica: ReplicaId, script: Script, timer: Coroutine[Any, Any, None]) -> None:
        self._running[replica] = (script, self._tasks.start(timer, str(replica)))

    async def _run(self, replica: ReplicaId, script: Script) -> None:
        await self._pass(script.begins_ms)
        self._began_at[replica] = self._clock.now()
        self._observer.replica_started(replica, LIMITS)
        runs_ms = script.runs_of(replica.rank)
        if self._containers[replica].spec.elastic is not None and runs_ms is not None:
            runs_ms = self._train(replica, script, runs_ms)
        await self._run_to_end(replica, script, runs_ms)

    def _train(self, replica: ReplicaId, script: Script, runs_ms: int) -> int:
        """Let a worker join its job's training, and return how long it runs: of a training that succeeds, to its last
        step with the workers that there are now."""
        job, spec, now = replica.job, self._containers[replica].spec, self._clock.now()
        training = self._trainings.get(job)
        if training is None:
            training = self._trainings[job] = Training(
                runs_ms if script.exit.ok else 1000 * spec.time_limit_seconds,
                spec.nodes,
                self._scripts.chance("steps", spec.name),
            )
        others = self._workers_of(replica)
        if not others:
            training.begin(now)
        training.go_on(len(others) + 1, now)
        if job not in self._reporting:
            self._reporting[job] = self._tasks.start(self._report_steps(job), f"steps of {job}")
        if not script.exit.ok:
            return runs_ms
        for each in others:
            self._reschedule(each, training.left_ms(now))
        return training.left_ms(now)

    def _workers_of(self, replica: ReplicaId) -> list[ReplicaId]:
        """Return the other replicas of the attempt whose commands run, the first one first."""
        of_attempt = (each for each in self._running if each.job == replica.job and each.attempt == replica.attempt)
        return sorted(
            [each for each in of_attempt if each in self._ends_at and each != replica], key=lambda each: each.rank
        )

    def _reschedule(self, replica: ReplicaId, left_ms: int) -> None:
        """Let a running replica end at another time. A frozen one goes on later, and gets its time then."""
        script, task = self._running[replica]
        if replica in self._remaining_ms:
            self._remaining_ms[replica] = left_ms
            return
        task.cancel()
        self._follow(replica, script, self._run_to_end(replica, script, left_ms))

    async def _report_steps(self, job: JobId) -> None:
        """Report the steps of a job's training at intervals, for as long as a worker of it runs."""
        while workers := sorted([each for each in self._ends_at if each.job == job], key=lambda each: each.rank):
            self._observer.worker_stepped(workers[0], self._trainings[job].report(self._clock.now()))
            await self._pass(REPORT_MS)
        del self._reporting[job]

    def _leave_training(self, replica: ReplicaId, status: ExitStatus) -> None:
        """Let the others continue without a worker that has ended, and report what it has done."""
        training, now = self._trainings.get(replica.job), self._clock.now()
        if training is None or replica not in self._ends_at:
            return
        self._observer.worker_stepped(replica, training.report(now))
        others = self._workers_of(replica)
        training.go_on(len(others), now)
        # All workers of a training that is complete end at the same moment.
        for each in others if not status.ok else ():
            if self._running[each][0].exit.ok:
                self._reschedule(each, training.left_ms(now))

    async def _run_to_end(self, replica: ReplicaId, script: Script, runs_ms: int | None) -> None:
        self._ends_at[replica] = None if runs_ms is None else Millis(self._clock.now() + runs_ms)
        if runs_ms is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._pass(runs_ms)
            self._end(replica, script.exit)

    async def _end_after(self, replica: ReplicaId, milliseconds: int) -> None:
        await self._pass(milliseconds)
        self._end(replica, TERMINATED)

    def _end(self, replica: ReplicaId, status: ExitStatus) -> None:
        # First, since the figures come from what is removed next.
        use = self._use(replica)
        del self._running[replica]
        self._leave_training(replica, status)
        self._ends_at.pop(replica, None)
        self._remaining_ms.pop(replica, None)
        self._began_at.pop(replica, None)
        self._observer.replica_ended(replica, status, None if use is None else use.total)

    def _use(self, replica: ReplicaId) -> ReplicaUse | None:
        began, start = self._began_at.get(replica), self._containers.get(replica)
        if began is None or start is None:
            return None
        return use_of(start, self._nodes.get(start.allocation.node), began, self._clock.now())

    async def _pass(self, milliseconds: int) -> None:
        await self._clock.wait_until(Millis(self._clock.now() + milliseconds))
