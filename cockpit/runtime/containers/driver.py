"""Makes containers and runs commands in them: the executor of the embedded engine.

Everything that matters is in the attempts' folders, so a new engine finds it again. Two things wake the driver: a line
in the FIFO `<state>/notify` (a command has started or ended), and a holder's pidfd (a container is gone).
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.engine.effects import Force
from cockpit.errors import RequestRefused, SpecErrors
from cockpit.model.asking import LogStream
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import ReplicaId, replica_id_from_folder
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.usage import Used
from cockpit.runtime import faults
from cockpit.runtime.containers import entering, freezing, library, networks, removal, spawning, telling, world
from cockpit.runtime.containers.copies import Copies
from cockpit.runtime.containers.heartbeats import Heartbeats
from cockpit.runtime.containers.nodescripts import noted
from cockpit.runtime.containers.plan import ContainerPlan, cgroup_name
from cockpit.runtime.containers.prechecking import NOWHERE
from cockpit.runtime.containers.pressure import Pressure
from cockpit.runtime.containers.sampling import Sampler
from cockpit.runtime.containers.shim import holder, job_processes
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.staging.disk import watch_disk
from cockpit.runtime.containers.staging.fetching import FetchFailed
from cockpit.runtime.containers.watching import NotifyFifo, Watched
from cockpit.runtime.logs import left_out, mib_of
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from cockpit.engine.effects import (
        CheckNodes,
        FreezeReplica,
        KeepContainer,
        RemoveContainer,
        SignalReplica,
        StageReplica,
        StartReplica,
        TellWorkers,
        ThawReplica,
    )
    from cockpit.engine.ports import Observer
    from cockpit.launch.nodescripts import ScriptFacts
    from cockpit.model.ids import NodeName
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.staging import Progress, StagedCopy
    from cockpit.runtime.containers.nodescripts import NodeScripts
    from cockpit.runtime.containers.prechecking import Prechecks
    from cockpit.runtime.containers.staging.staging_cache import StagingCache

_LEAVE_SECONDS = 5
_ENDED_BEFORE = ExitStatus(lost="it was ended while its files were copied")
_SIGNALS = {Force.TERM: holder.TERMINATE, Force.KILL: holder.KILL, Force.EARLY: holder.EARLY}


def _alone(_replica: ReplicaId) -> Mapping[str, bytes]:
    """Where nobody says who else there is."""
    return {}


class ContainerExecutor:
    """Implements `engine.ports.Executor`. `state`: the engine's state folder; `plan_for` joins the launch room, and so
    does `workers_of`: what a worker of an elastic job is told of the others just now; `scripts` run around each job on
    its nodes, and `depot` has what must be copied to them.

    `open` before anything else, in the host's loop; `close` leaves every container as it is.
    """

    def __init__(
        self,
        state: Path,
        plan_for: Callable[[StartReplica], ContainerPlan],
        observer: Observer,
        *,
        workers_of: Callable[[ReplicaId], Mapping[str, bytes]] = _alone,
        depot: StagingCache | None = None,
        scripts: NodeScripts | None = None,
        python: str = sys.executable,
    ) -> None:
        self._state = state
        self._plan_for, self._workers_of = plan_for, workers_of
        self._observer = observer
        self._scripts = scripts
        self.prechecks: Prechecks | None = None
        """Set once, where nodes are looked at before certain jobs; None: nothing is ever wrong with one."""
        self._depot = depot
        self._copies = Copies(depot, observer.staging_moved) if depot is not None else None
        self._copying: dict[ReplicaId, asyncio.Task[None]] = {}
        self._waiting: set[ReplicaId] = set()
        """They have their copies, and start once the other replicas of their jobs have theirs."""
        self._python = python
        self._tasks = Tasks()
        self._sampler = Sampler(self._tasks)
        self._pulses = Heartbeats(self._tasks, observer)
        self.memory_of: Callable[[NodeName], int] = lambda _: sys.maxsize
        """Set once: MiB of a node."""
        self._pressure = Pressure(self._tasks, observer, self._memory_of)
        self._shims = spawning.Shims(python)
        self._watched: dict[ReplicaId, Watched] = {}
        self._locks: dict[ReplicaId, asyncio.Lock] = {}
        self._bell = NotifyFifo(state / "notify", self._rung)

    def open(self) -> None:
        (self._state / "containers").mkdir(parents=True, exist_ok=True, mode=0o700)
        library.lay_out(self._state)
        self._bell.open()

    def close(self) -> None:
        if self._depot is not None:
            self._depot.close()
        for copying in self._copying.values():
            copying.cancel()
        self._bell.close()
        self._sampler.close()
        self._pulses.close()
        self._pressure.close()
        self._shims.close()
        for watched in self._watched.values():
            watched.close()
        self._watched.clear()

    async def stage(self, effect: StageReplica) -> None:
        """Beside everything else: whoever wants it ended need not wait for it."""
        if effect.replica not in self._copying:
            self._copy(effect.start, self._staged)

    def staging(self, replica: ReplicaId) -> Progress | None:
        return self._copies.progress(replica) if self._copies is not None else None

    async def copies(self) -> list[StagedCopy]:
        return await self._depot.copies() if self._depot is not None else []

    async def remove_copy(self, key: str) -> bool:
        return self._depot is not None and await self._depot.remove(key)

    async def start(self, effect: StartReplica) -> None:
        self._waiting.discard(effect.replica)
        begun = effect.replica in self._watched or self._attempt(effect.replica).read("plan.json") is not None
        if self._copies is not None and not begun and self._copies.lacks(effect):
            self._copy(effect, self._start_alone)
        else:
            await self._start_alone(effect)

    async def _start_alone(self, effect: StartReplica) -> None:
        async with self._lock(effect.replica):
            if effect.replica not in self._watched:
                await self._start(effect)

    async def check(self, effect: CheckNodes) -> None:
        node, said = NOWHERE, ""
        if self.prechecks is not None:
            node, said = await asyncio.to_thread(self.prechecks.look, effect.placement)
        if node:
            self._observer.precheck_failed(effect.replica, node, said)
        else:
            self._observer.precheck_passed(effect.replica, said)

    async def _staged(self, start: StartReplica) -> None:
        self._waiting.add(start.replica)
        self._observer.replica_staged(start.replica)

    def _copy(self, start: StartReplica, then: Callable[[StartReplica], Coroutine[Any, Any, None]]) -> None:
        task = self._tasks.start(self._have_copies(start, then), f"copies of {start.replica}")
        self._copying[start.replica] = task
        task.add_done_callback(lambda _: self._copying.pop(start.replica, None))

    async def _have_copies(
        self, start: StartReplica, then: Callable[[StartReplica], Coroutine[Any, Any, None]]
    ) -> None:
        assert self._copies is not None
        try:
            await self._copies.have(start)
        except FetchFailed as failed:
            self._observer.replica_ended(start.replica, ExitStatus(lost=str(failed)))
        else:
            del self._copying[start.replica]  # from here on it is told to end as any other
            await then(start)

    async def signal(self, effect: SignalReplica) -> None:
        copying = self._copying.get(effect.replica)
        if copying is not None:
            copying.cancel()
            await asyncio.wait([copying])
            await self._copies_given_up()
        if copying is not None or effect.replica in self._waiting:
            self._waiting.discard(effect.replica)
            self._observer.replica_ended(effect.replica, _ENDED_BEFORE)
            return
        async with self._lock(effect.replica):
            watched = self._watched.get(effect.replica)
            if watched is not None:
                await asyncio.to_thread(freezing.thaw, watched.attempt)  # a frozen process neither hears nor dies
                watched.send(_SIGNALS[effect.force])

    async def _copies_given_up(self) -> None:
        """Nothing half of them is left, be it from an engine before."""
        if self._depot is not None:
            await self._depot.tidy()

    async def freeze(self, effect: FreezeReplica) -> None:
        await self._move(effect.replica, freezing.freeze)

    async def thaw(self, effect: ThawReplica) -> None:
        await self._move(effect.replica, freezing.thaw)

    async def _move(self, replica: ReplicaId, how: Callable[[Attempt], object]) -> None:
        async with self._lock(replica):
            watched = self._watched.get(replica)
            if watched is not None and watched.alive and not watched.ended:
                await asyncio.to_thread(how, watched.attempt)

    async def tell(self, effect: TellWorkers) -> None:
        async with self._lock(effect.replica):
            watched = self._watched.get(effect.replica)
            if watched is not None and watched.alive and not watched.ended:
                await asyncio.to_thread(world.show, watched.attempt, self._workers_of(effect.replica))

    async def keep(self, effect: KeepContainer) -> None:
        async with self._lock(effect.replica):
            await self._tidy_up(effect.replica)
        attempt = self._attempt(effect.replica)
        if attempt.read("plan.json") is not None:
            await asyncio.to_thread(telling.mark_kept, attempt, effect.cards, effect.until)
        if telling.is_of_podman(attempt):
            await self._keep_in_podman(effect.replica, attempt)

    async def remove(self, effect: RemoveContainer) -> None:
        await self._remove(effect.replica)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        named = {start.replica for start in expected} | {mark.replica for mark in kept}
        if self._depot is not None:
            await self._depot.forget_others({replica.folder for replica in named})
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(removal.empty_trash, self._state))
            group.create_task(asyncio.to_thread(networks.tidy_up, self._state))
            for replica in self._found() - named:
                self._beside(group, self._remove(replica), wait=noted(self._attempt(replica)) is None)
            for effect in expected:
                self._beside(group, self.start(effect), wait=not self._is_to_be_prepared(effect))
            for mark in kept:
                group.create_task(self._adopt_kept(mark))
        if self._depot is not None:
            self._tasks.start(watch_disk(self._depot, self._observer), "disk for copies")

    def _beside(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None], *, wait: bool) -> None:
        """Nobody waits for scripts of the cluster, which may take minutes."""
        if wait:
            group.create_task(work)
        else:
            self._tasks.start(work, "scripts of an attempt found again")

    def _is_to_be_prepared(self, effect: StartReplica) -> bool:
        attempt = self._attempt(effect.replica)
        return self._scripts is not None and self._scripts.any and attempt.read("shim.json") is None

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: entering.Terminal | None, label: str
    ) -> entering.EnteredShell:
        """Start a program (empty: a shell) in a running or kept container; `label` leads its prompt.

        Raises RequestRefused where there is nothing to enter.
        """
        attempt = self._attempt(replica)
        try:
            async with self._lock(replica):
                await self._ensure_holder(replica, attempt)
            facts = await asyncio.to_thread(telling.entry_facts, attempt)
            return await entering.enter(attempt, command, terminal, label=label, facts=facts, python=self._python)
        except (entering.EnterError, spawning.SpawnError, OSError) as error:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, f"{replica}: {error}")) from error

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        return await self._sampler.used(replica, self._attempt(replica))

    async def _start(self, effect: StartReplica) -> None:
        attempt = self._attempt(effect.replica)
        if attempt.read("shim.json") is None and attempt.read("exit.json") is None:
            if self._scripts is not None and (failed := await self._scripts.before(effect, attempt)):
                self._observer.prolog_failed(effect.replica, failed)
                return
            faults.point("spawning", attempt.name)
            try:
                if effect.spec.elastic is not None:
                    await asyncio.to_thread(world.show, attempt, self._workers_of(effect.replica))
                await asyncio.to_thread(spawning.spawn, attempt, self._planned(effect), self._shims)
            except (spawning.SpawnError, SpecErrors, OSError) as error:
                sentence = f"the container could not be made: {error}"
                died = isinstance(error, spawning.ShimDied)
                self._observer.replica_ended(effect.replica, ExitStatus(lost=sentence, unstarted=died))
                return
            faults.point("spawned", attempt.name)
        self._watch(effect.replica, attempt)
        self._pressure.follow(effect, attempt)
        if effect.spec.elastic is not None:
            self._pulses.follow(effect, attempt)
        self._look(effect.replica)
        await asyncio.to_thread(self._shims.prepare)

    def _planned(self, effect: StartReplica) -> ContainerPlan:
        plan = self._plan_for(effect)
        return plan if self._copies is None else self._copies.laid_out(plan, effect)

    async def _adopt_kept(self, mark: KeepContainer) -> None:
        await self.keep(mark)
        watched = self._watch(mark.replica, self._attempt(mark.replica))
        watched.ended = True

    async def _ensure_holder(self, replica: ReplicaId, attempt: Attempt) -> None:
        watched = self._watched.get(replica)
        if watched is not None and watched.alive:
            return
        if attempt.read("exit.json") is None or attempt.read("plan.json") is None:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"{replica} has no container to enter"))
        await asyncio.to_thread(spawning.spawn_again, attempt, self._shims)
        self._watch(replica, attempt).ended = True

    async def _keep_in_podman(self, replica: ReplicaId, attempt: Attempt) -> None:
        """Have it commit what the job left and run that in its place. Who enters tries again what fails here."""
        async with self._lock(replica):
            watched = self._watched.get(replica) or self._watch(replica, attempt)
            watched.ended = True
            if not telling.was_made_again(attempt):
                await watched.leave(holder.LEAVE, _LEAVE_SECONDS)
            with suppress(spawning.SpawnError, OSError):
                await self._ensure_holder(replica, attempt)

    async def _tidy_up(self, replica: ReplicaId) -> None:
        """The epilogs of one replica's node, unless they had their turn. Its lock is held."""
        if self._scripts is not None:
            node, failed = await self._scripts.after(self._attempt(replica))
            if failed:
                self._observer.epilog_failed(node, failed)

    async def _end(self, replica: ReplicaId, facts: ScriptFacts | None, status: ExitStatus, used: Used | None) -> None:
        """The job has ended once nothing of it runs and its nodes are tidied up: with its last replica, since nodes may
        share files."""
        await asyncio.to_thread(job_processes.end_plain, self._attempt(replica))
        gang = [ReplicaId(replica.job, replica.attempt, rank) for rank in range(facts.replicas if facts else 0)]
        if all(self._has_ended(each) for each in gang):
            for each in gang:
                async with self._lock(each):
                    await self._tidy_up(each)
        self._observer.replica_ended(replica, status, used)

    def _has_ended(self, replica: ReplicaId) -> bool:
        watched = self._watched.get(replica)
        return watched.ended if watched is not None else self._attempt(replica).read("exit.json") is not None

    async def _remove(self, replica: ReplicaId) -> None:
        attempt = self._attempt(replica)
        async with self._lock(replica):
            watched = self._watched.pop(replica, None) or Watched(attempt, lambda: None)
            self._unfollow(replica)
            watched.ended = True
            await asyncio.to_thread(freezing.thaw, attempt)
            await watched.leave(holder.LEAVE, _LEAVE_SECONDS)
            watched.close()
            await asyncio.to_thread(job_processes.end_plain, attempt)
            await self._tidy_up(replica)
            faults.point("removing", attempt.name)
            await asyncio.to_thread(spawning.forget, attempt, self._python)
            await asyncio.to_thread(removal.delete, attempt, cgroup_name(self._state, replica))
            await asyncio.to_thread(networks.tidy_up, self._state)
            self._waiting.discard(replica)
            if self._copies is not None:
                await self._copies.leave(replica)
        self._locks.pop(replica, None)

    def _watch(self, replica: ReplicaId, attempt: Attempt) -> Watched:
        if (old := self._watched.get(replica)) is not None:
            old.close()
        watched = self._watched[replica] = Watched(attempt, lambda: self._look(replica))
        return watched

    def _rung(self, name: str) -> None:
        replica = replica_id_from_folder(name)
        if replica is not None:
            self._look(replica)

    def _look(self, replica: ReplicaId) -> None:
        """Report what the attempt's folder says and has not been reported yet."""
        watched = self._watched.get(replica)
        if watched is None or watched.ended:
            return
        alive = watched.alive
        started = watched.attempt.read("started.json")
        if started is not None and not watched.started:
            watched.started = True
            self._sampler.follow(replica, watched.attempt)
            self._observer.replica_started(replica, started["limits"])
        record = watched.attempt.read("exit.json")
        if record is not None or not alive:
            watched.ended = True
            self._unfollow(replica)
            status, lost = telling.exit_status(watched.attempt, record), record is None
            used = _with_logs(self._sampler.leave(replica), watched.attempt)
            facts = noted(watched.attempt) if self._scripts is not None else None
            if facts is not None or lost:
                self._tasks.start(self._end(replica, facts, status, used), f"end of {replica}")
            else:
                self._observer.replica_ended(replica, status, used)

    def _memory_of(self, node: NodeName) -> int:
        return self.memory_of(node)

    def _unfollow(self, replica: ReplicaId) -> None:
        self._pulses.leave(replica)
        self._pressure.leave(replica)

    def _found(self) -> set[ReplicaId]:
        names = (path.name for path in (self._state / "containers").iterdir())
        return {replica for name in names if (replica := replica_id_from_folder(name)) is not None}

    def _attempt(self, replica: ReplicaId) -> Attempt:
        return Attempt(str(self._state / "containers" / replica.folder))

    def _lock(self, replica: ReplicaId) -> asyncio.Lock:
        return self._locks.setdefault(replica, asyncio.Lock())


def _with_logs(used: Used | None, attempt: Attempt) -> Used | None:
    """What a replica has used, with what of its logs is not kept."""
    plan = attempt.read("plan.json") or {}
    size = sum(left_out(Path(plan[name])) for name in LogStream if name in plan)
    return replace(used or Used(), log_left_out_mib=mib_of(size)) if size else used
