"""Make containers and run commands in them: the executor of the embedded engine.

The life of a replica. Each step is started by an effect of the engine, or by what the shim reports:

1. `check` examines the nodes of certain jobs. `stage` copies images and datasets to this machine, in a task of its own,
   and then reports `replica_staged`.
2. `start` runs the prologs, writes the plan to the attempt's folder, spawns the shim (`shim.hold`) and watches it. The
   shim makes the container, starts the command, and stays as the container's holder.
3. The shim writes the attempt's name into the FIFO `<state>/notify`. `_look` then reads the records in the attempt's
   folder, and reports the start of the command. A holder's pidfd also wakes `_look`, when the holder dies.
4. `signal`, `freeze`, `thaw` and `write_workers_file` act on the running container.
5. `_look` reads how the command ended. With the last replica of the job, `_end` runs the epilogs. Only then the end is
   reported, since the resources are free only then.
6. `keep` holds the container of a failed job. `remove` ends the holder and deletes the attempt's folder.

All facts are in the attempts' folders, so that a new engine process continues where the one before it ended (`adopt`),
and every effect may be repeated. The lock of a replica keeps two steps from working on its folder at the same time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.engine.effects import SignalKind
from cockpit.errors import RequestRefused, SpecErrors
from cockpit.model.asking import WRITTEN_STREAMS
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import ReplicaId, replica_id_from_folder
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.usage import ReplicaTotals
from cockpit.runtime import faults
from cockpit.runtime.containers import (
    attempt_records,
    entering,
    freezing,
    heartbeats,
    library,
    networks,
    removal,
    spawning,
)
from cockpit.runtime.containers.copies import Copies
from cockpit.runtime.containers.heartbeats import Heartbeats
from cockpit.runtime.containers.nodescripts import read_facts
from cockpit.runtime.containers.plan import ContainerPlan, cgroup_name
from cockpit.runtime.containers.prechecking import NOWHERE
from cockpit.runtime.containers.pressure import Pressure
from cockpit.runtime.containers.sampling import Sampler
from cockpit.runtime.containers.shim import holder, job_processes
from cockpit.runtime.containers.shim.attempt import Attempt, is_disk_full
from cockpit.runtime.containers.staging.fetching import FetchFailed
from cockpit.runtime.containers.staging.staging_cache import watch_disk
from cockpit.runtime.containers.watching import NotifyFifo, WatchedAttempt
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
        ThawReplica,
        WriteWorkersFile,
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
"""Seconds for a holder to end when asked; then it is killed."""
_SPACE_BYTES = 1 << 18
"""Free disk space that making a container needs: its records and the folders of its file system."""
_SPACE_SECONDS, _SPACE_POLL_SECONDS = 10, 0.02
"""How long a start waits for that space, and how often it looks."""
_ENDED_BEFORE = ExitStatus(lost="it was ended while its files were copied")
_SIGNALS = {SignalKind.TERM: holder.TERMINATE, SignalKind.KILL: holder.KILL, SignalKind.EARLY: holder.EARLY}


async def _await_space(folder: Path) -> None:
    """Wait until the folder's disk has space for a container, but not longer than `_SPACE_SECONDS`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SPACE_SECONDS):
            while _free_bytes(folder) < _SPACE_BYTES:  # noqa: ASYNC110 - the file system notifies nobody
                await asyncio.sleep(_SPACE_POLL_SECONDS)


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _no_workers(_replica: ReplicaId) -> Mapping[str, bytes]:
    """Return no files; the default where there are no elastic jobs."""
    return {}


class ContainerExecutor:
    """Implements `engine.ports.Executor`.

    `state`: the engine's state folder. `plan_for` makes a replica's container plan. `workers_of` returns the files that
    tell a worker of an elastic job about the other workers. `scripts`: the prologs and epilogs of the cluster's nodes.
    `staging_cache`: the copies of images and datasets on this machine.

    Call `open` first, in the host's loop. `close` leaves every container as it is. The module's docstring lists the
    steps of a replica's life.
    """

    def __init__(
        self,
        state: Path,
        plan_for: Callable[[StartReplica], ContainerPlan],
        observer: Observer,
        *,
        workers_of: Callable[[ReplicaId], Mapping[str, bytes]] = _no_workers,
        staging_cache: StagingCache | None = None,
        scripts: NodeScripts | None = None,
        python: str = sys.executable,
    ) -> None:
        self._state = state
        self._plan_for, self._workers_of = plan_for, workers_of
        self._observer = observer
        self._scripts = scripts
        self.prechecks: Prechecks | None = None
        """The checks of nodes before certain jobs, set after construction; None: every node passes."""
        self._staging_cache = staging_cache
        self._copies = Copies(staging_cache, observer.staging_moved) if staging_cache is not None else None
        self._copying: dict[ReplicaId, asyncio.Task[None]] = {}
        """The tasks that copy for replicas; a signal cancels one instead of reaching a container."""
        self._waiting: set[ReplicaId] = set()
        """The replicas that have their copies and wait until the other replicas of their jobs have theirs."""
        self._python = python
        self._tasks = Tasks()
        self._sampler = Sampler(self._tasks)
        self._heartbeats = Heartbeats(self._tasks, observer)
        self.memory_of: Callable[[NodeName], int] = lambda _: sys.maxsize
        """Returns a node's memory in MiB; set after construction."""
        # The method instead of `memory_of`, which the owner of the executor replaces later.
        self._pressure = Pressure(self._tasks, observer, self._memory_of)
        self._shims = spawning.Shims(python)
        self._watched: dict[ReplicaId, WatchedAttempt] = {}
        """The attempts with a container, running or held; an effect for another replica has nothing to act on."""
        self._locks: dict[ReplicaId, asyncio.Lock] = {}
        """Each held while a step works on the replica's folder."""
        self._notify_fifo = NotifyFifo(state / "notify", self._on_notice)

    def open(self) -> None:
        (self._state / "containers").mkdir(parents=True, exist_ok=True, mode=0o700)
        # Before any container is made, since containers mount this folder.
        library.lay_out(self._state)
        # Last: from here on shims find a running engine (`Attempt.is_served`) and expect it to read their notices.
        self._notify_fifo.open()

    def close(self) -> None:
        # First, so that the copies cancelled below keep their files, with which the next engine continues.
        if self._staging_cache is not None:
            self._staging_cache.close()
        for copying in self._copying.values():
            copying.cancel()
        self._notify_fifo.close()
        self._sampler.close()
        self._heartbeats.close()
        self._pressure.close()
        self._shims.close()
        for watched in self._watched.values():
            watched.close()
        self._watched.clear()

    async def stage(self, effect: StageReplica) -> None:
        """Start to copy in a task of its own: an effect that cancels it must not wait behind it."""
        if effect.replica not in self._copying:
            self._copy(effect.start, self._report_staged)

    def staging(self, replica: ReplicaId) -> Progress | None:
        return self._copies.progress(replica) if self._copies is not None else None

    async def copies(self) -> list[StagedCopy]:
        return await self._staging_cache.copies() if self._staging_cache is not None else []

    async def remove_copy(self, key: str) -> bool:
        return self._staging_cache is not None and await self._staging_cache.remove(key)

    async def start(self, effect: StartReplica) -> None:
        """Start the replica's container once, however often the effect is repeated."""
        # From here on a signal must reach the container, and is not answered by `signal` itself.
        self._waiting.discard(effect.replica)
        begun = effect.replica in self._watched or self._attempt(effect.replica).read("plan.json") is not None
        if self._copies is not None and not begun and self._copies.lacks(effect):
            # An engine that was killed after staging knows no paths of copies: find the copies, or make them, again.
            self._copy(effect, self._start_once)
        else:
            await self._start_once(effect)

    async def _start_once(self, effect: StartReplica) -> None:
        async with self._lock(effect.replica):
            # A repeated effect finds the replica watched: it was started or adopted before.
            if effect.replica not in self._watched:
                await self._start(effect)

    async def check(self, effect: CheckNodes) -> None:
        # Nothing is checked if there are no prechecks: the empty node means that all have passed.
        node, result = NOWHERE, ""
        if self.prechecks is not None:
            # In a thread, since the drivers' tools that it runs may take seconds.
            node, result = await asyncio.to_thread(self.prechecks.look, effect.placement)
        if node:
            self._observer.precheck_failed(effect.replica, node, result)
        else:
            self._observer.precheck_passed(effect.replica, result)

    async def _report_staged(self, start: StartReplica) -> None:
        self._waiting.add(start.replica)
        self._observer.replica_staged(start.replica)

    def _copy(self, start: StartReplica, then: Callable[[StartReplica], Coroutine[Any, Any, None]]) -> None:
        task = self._tasks.start(self._have_copies(start, then), f"copies of {start.replica}")
        self._copying[start.replica] = task
        # With a default: `_have_copies` removes the entry itself, before it starts the container.
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
            del self._copying[start.replica]  # from here on `signal` no longer cancels the copying
            await then(start)

    async def signal(self, effect: SignalReplica) -> None:
        """Pass the engine's signal to the holder. Before there is one, cancel the copying and report the end."""
        copying = self._copying.get(effect.replica)
        if copying is not None:
            copying.cancel()
            await asyncio.wait([copying])  # else it could write a partial copy after the removal below
            await self._remove_partial_copies()
        if copying is not None or effect.replica in self._waiting:  # no process exists, so report its end here
            self._waiting.discard(effect.replica)
            self._observer.replica_ended(effect.replica, _ENDED_BEFORE)
            return
        async with self._lock(effect.replica):
            watched = self._watched.get(effect.replica)
            if watched is not None:
                await asyncio.to_thread(freezing.thaw, watched.attempt)  # a frozen process handles no signal
                watched.send(_SIGNALS[effect.force])

    async def _remove_partial_copies(self) -> None:
        """Remove unfinished copies, also those of an earlier engine."""
        # Cancelled tasks remove their own files; those of an engine that was killed are left to be removed here.
        if self._staging_cache is not None:
            await self._staging_cache.tidy()

    async def freeze(self, effect: FreezeReplica) -> None:
        await self._apply_to_running(effect.replica, freezing.freeze)

    async def thaw(self, effect: ThawReplica) -> None:
        await self._apply_to_running(effect.replica, freezing.thaw)

    async def _apply_to_running(self, replica: ReplicaId, how: Callable[[Attempt], object]) -> None:
        async with self._lock(replica):
            watched = self._watched.get(replica)
            # An effect may come after the end of the command: nothing is left then that it could apply to.
            if watched is not None and watched.alive and not watched.ended:
                await asyncio.to_thread(how, watched.attempt)

    async def write_workers_file(self, effect: WriteWorkersFile) -> None:
        async with self._lock(effect.replica):
            watched = self._watched.get(effect.replica)
            if watched is not None and watched.alive and not watched.ended:
                await asyncio.to_thread(heartbeats.show, watched.attempt, self._workers_of(effect.replica))

    async def keep(self, effect: KeepContainer) -> None:
        """Hold the container of a failed job, with or without its cards, until the moment in the effect."""
        async with self._lock(effect.replica):
            # They have usually run (`_end`), unless an engine was killed between the end of the command and this
            # effect.
            await self._run_epilogs(effect.replica)
        attempt = self._attempt(effect.replica)
        # A replica that ended before it was started, while its images were copied, has nothing to hold.
        if attempt.read("plan.json") is not None:
            await asyncio.to_thread(attempt_records.mark_kept, attempt, effect.cards, effect.until)
        if attempt_records.is_of_podman(attempt):
            await self._keep_in_podman(effect.replica, attempt)

    async def remove(self, effect: RemoveContainer) -> None:
        await self._remove(effect.replica)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Bring what is on the disk in line with the engine's state, after a time without an engine.

        1. Release the copies of replicas that the state does not name.
        2. Remove the folders of these replicas; watch or start those that should run; hold those that are held.
        3. Begin to watch the disk for copies.
        """
        named = {start.replica for start in expected} | {mark.replica for mark in kept}
        # 1: the notes on used copies outlive an engine (`cache_store`). Those of replicas that are gone would protect
        # their copies for ever.
        if self._staging_cache is not None:
            await self._staging_cache.forget_others({replica.folder for replica in named})
        # 2: all at once, since most of the time is spent waiting for processes to end.
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(removal.empty_trash, self._state))
            group.create_task(asyncio.to_thread(networks.tidy_up, self._state))
            # The engine before this one ended while it removed them.
            for replica in self._replicas_on_disk() - named:
                # A replica with prologs has epilogs to run too, for which the start of the engine does not wait.
                self._run_task(group, self._remove(replica), wait=read_facts(self._attempt(replica)) is None)
            for effect in expected:
                self._run_task(group, self.start(effect), wait=not self._needs_prolog(effect))
            for mark in kept:
                group.create_task(self._adopt_held(mark))
        # 3: last, since it removes unfinished copies that no recovered replica has taken up.
        if self._staging_cache is not None:
            self._tasks.start(watch_disk(self._staging_cache, self._observer), "disk for copies")

    def _run_task(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None], *, wait: bool) -> None:
        """Run `work` in the group, or outside of it if the engine's start must not wait: prologs may take minutes."""
        if wait:
            group.create_task(work)
        else:
            self._tasks.start(work, "scripts of an adopted attempt")

    def _needs_prolog(self, effect: StartReplica) -> bool:
        attempt = self._attempt(effect.replica)
        return self._scripts is not None and self._scripts.any and attempt.read("shim.json") is None

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: entering.Terminal | None, label: str
    ) -> entering.EnteredShell:
        """Start a program (empty: a shell) in a running or held container; the prompt begins with `label`.

        Raises `RequestRefused` if there is no container.
        """
        attempt = self._attempt(replica)
        try:
            # Under the lock, or two shells at the same time would start two holders.
            async with self._lock(replica):
                await self._ensure_holder(replica, attempt)
            # After the holder: if it had to be made again, the folders in memory are new, which the user should read.
            facts = await asyncio.to_thread(attempt_records.entry_facts, attempt)
            return await entering.enter(attempt, command, terminal, label=label, facts=facts, python=self._python)
        except (entering.EnterError, spawning.SpawnError, OSError) as error:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, f"{replica}: {error}")) from error

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        return await self._sampler.used(replica, self._attempt(replica))

    async def _start(self, effect: StartReplica) -> None:
        """Start a replica's container, or adopt it if an engine before this one has started it.

        1. Unless the command may have run already: run the prologs. If one fails, report it and end.
        2. Wait a moment if the disk is full. Write an elastic job's worker list and the plan, and spawn the shim. If
           that fails, report the end.
        3. Watch the holder, the node's memory, and the heartbeats of an elastic job's worker.
        4. Report what the attempt's folder records by now.
        """
        attempt = self._attempt(effect.replica)
        # With either file the command may have run: it is watched then, and never started a second time.
        if attempt.read("shim.json") is None and attempt.read("exit.json") is None:
            # 1: before the shim, which makes the container at once.
            if self._scripts is not None and (failed := await self._scripts.before(effect, attempt)):
                self._observer.prolog_failed(effect.replica, failed)
                return
            faults.point("spawning", attempt.name)
            # 2: the log of another job may have taken the whole disk, until its holder shortens it.
            await _await_space(self._state)
            try:
                # First, since the container mounts the folders that this makes.
                if effect.spec.elastic is not None:
                    await asyncio.to_thread(heartbeats.show, attempt, self._workers_of(effect.replica))
                await asyncio.to_thread(spawning.spawn, attempt, self._container_plan(effect), self._shims)
            except (spawning.SpawnError, SpecErrors, OSError) as error:
                sentence = f"the container could not be made: {error}"
                # A shim that died or found the disk full had not begun the command: the engine starts the job again,
                # and does not blame it.
                unstarted = isinstance(error, spawning.ShimDied) or is_disk_full(error)
                self._observer.replica_ended(effect.replica, ExitStatus(lost=sentence, unstarted=unstarted))
                return
            faults.point("spawned", attempt.name)
        # 3
        self._watch(effect.replica, attempt)
        self._pressure.follow(effect, attempt)
        if effect.spec.elastic is not None:
            self._heartbeats.follow(effect, attempt)
        # 4: they may have been written before the watch began, and no notification would come for these.
        self._look(effect.replica)
        # Last, so that it delays no container: the next start then need not wait for a Python interpreter.
        await asyncio.to_thread(self._shims.prepare)

    def _container_plan(self, effect: StartReplica) -> ContainerPlan:
        plan = self._plan_for(effect)
        return plan if self._copies is None else self._copies.laid_out(plan, effect)

    async def _adopt_held(self, mark: KeepContainer) -> None:
        await self.keep(mark)
        watched = self._watch(mark.replica, self._attempt(mark.replica))
        # The end of its command is in the journal already.
        watched.ended = True

    async def _ensure_holder(self, replica: ReplicaId, attempt: Attempt) -> None:
        watched = self._watched.get(replica)
        if watched is not None and watched.alive:
            return
        # Only a held container is made again: a job without an exit record was not started, or was lost.
        if attempt.read("exit.json") is None or attempt.read("plan.json") is None:
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, f"{replica} has no container to enter"))
        await asyncio.to_thread(spawning.spawn_again, attempt, self._shims)
        # The end of the command was reported by its first holder, so that this one's end means nothing to the job.
        self._watch(replica, attempt).ended = True

    async def _keep_in_podman(self, replica: ReplicaId, attempt: Attempt) -> None:
        """Let podman commit the container's files to an image, and hold a container of that image instead.

        An error is ignored here; `enter` tries again.
        """
        async with self._lock(replica):
            watched = self._watched.get(replica) or self._watch(replica, attempt)
            # The end of the holder below is wanted, and must not be reported as an end of the job.
            watched.ended = True
            # A repeated effect finds the container of the image, whose holder stays.
            if not attempt_records.was_made_again(attempt):
                await watched.leave(holder.LEAVE, _LEAVE_SECONDS)
            with suppress(spawning.SpawnError, OSError):
                await self._ensure_holder(replica, attempt)

    async def _run_epilogs(self, replica: ReplicaId) -> None:
        """Run the epilogs of the replica's node, unless they have run. The caller holds the replica's lock."""
        if self._scripts is not None:
            node, failed = await self._scripts.after(self._attempt(replica))
            if failed:
                self._observer.epilog_failed(node, failed)

    async def _end(
        self, replica: ReplicaId, facts: ScriptFacts | None, status: ExitStatus, used: ReplicaTotals | None
    ) -> None:
        """Report the end of a replica, after its processes are gone and the epilogs have run.

        The epilogs of all nodes run with the last replica of the job, since the nodes may share files.
        """
        # Before the epilogs, which may remove what the processes use.
        await asyncio.to_thread(job_processes.end_plain, self._attempt(replica))
        # Without scripts there is no gang to wait for: only the end of plain processes had to be awaited.
        gang = [ReplicaId(replica.job, replica.attempt, rank) for rank in range(facts.replicas if facts else 0)]
        if all(self._has_ended(member) for member in gang):
            for member in gang:
                # A sibling's `remove` may run at the same time, and both would run its epilogs.
                async with self._lock(member):
                    await self._run_epilogs(member)
        self._observer.replica_ended(replica, status, used)

    def _has_ended(self, replica: ReplicaId) -> bool:
        watched = self._watched.get(replica)
        return watched.ended if watched is not None else self._attempt(replica).read("exit.json") is not None

    async def _remove(self, replica: ReplicaId) -> None:
        """Remove a replica's container and files. Each step may be repeated after a crash: the folder goes late.

        1. End the holder, and what plain processes it has left. Then nothing uses the files any more.
        2. Run the epilogs, which may read the files.
        3. Delete podman's container, the folder with the cgroups, and, after the job's last replica, its network.
        4. Release the copies, which the container had mounted.
        """
        attempt = self._attempt(replica)
        async with self._lock(replica):
            # 1. A folder of an earlier engine was never watched; its holder may live nevertheless.
            watched = self._watched.pop(replica, None) or WatchedAttempt(attempt, lambda: None)
            self._unfollow(replica)
            # `_look` reports nothing from here on: the engine knows of this end.
            watched.ended = True
            # a frozen holder would handle no signal
            await asyncio.to_thread(freezing.thaw, attempt)
            await watched.leave(holder.LEAVE, _LEAVE_SECONDS)
            watched.close()
            # Plain processes do not die with their holder, as those of a pid namespace do (pid_namespaces(7)).
            await asyncio.to_thread(job_processes.end_plain, attempt)
            await self._run_epilogs(replica)  # 2
            faults.point("removing", attempt.name)
            # 3: podman first, since it needs the attempt's folder, which is deleted next.
            await asyncio.to_thread(spawning.forget, attempt, self._python)
            await asyncio.to_thread(removal.delete, attempt, cgroup_name(self._state, replica))
            await asyncio.to_thread(networks.tidy_up, self._state)
            self._waiting.discard(replica)
            if self._copies is not None:
                await self._copies.leave(replica)  # 4
        # The folder is gone, so that no later step has to be kept away from it.
        self._locks.pop(replica, None)

    def _watch(self, replica: ReplicaId, attempt: Attempt) -> WatchedAttempt:
        if (old := self._watched.get(replica)) is not None:
            old.close()  # its pidfd would stay open
        watched = self._watched[replica] = WatchedAttempt(attempt, lambda: self._look(replica))
        return watched

    def _on_notice(self, name: str) -> None:
        replica = replica_id_from_folder(name)
        if replica is not None:
            self._look(replica)

    def _look(self, replica: ReplicaId) -> None:
        """Report the start and the end that the attempt's folder records, each once.

        1. Report the start: by the holder's record, or, if the holder died in the moment of the start, by its mark.
        2. Report the end: by the exit record, or as lost if the holder died without writing one.

        It is called on every notice and at the holder's death, often without anything new.
        """
        watched = self._watched.get(replica)
        if watched is None or watched.ended:
            return
        alive = watched.alive  # read first: a holder writes its exit record before it dies
        # 1
        started = watched.attempt.read("started.json")
        if started is not None and not watched.started:
            watched.started = True
            self._sampler.follow(replica, watched.attempt)
            self._observer.replica_started(replica, started["limits"])
        elif not alive and not watched.started and watched.attempt.read("beginning.json") is not None:
            watched.started = True  # the command may have run: the job was lost, and its start has not failed
            self._observer.replica_started(replica, "")
        # 2
        record = watched.attempt.read("exit.json")
        if record is not None or not alive:
            watched.ended = True
            self._unfollow(replica)
            status, lost = attempt_records.exit_status(watched.attempt, record), record is None
            used = _with_logs(self._sampler.leave(replica), watched.attempt)
            facts = read_facts(watched.attempt) if self._scripts is not None else None
            # Epilogs run programs, and a holder that was killed may leave plain processes: a task waits for both before
            # the end is reported, since the resources are free only then.
            if facts is not None or lost:
                self._tasks.start(self._end(replica, facts, status, used), f"end of {replica}")
            else:
                self._observer.replica_ended(replica, status, used)

    def _memory_of(self, node: NodeName) -> int:
        return self.memory_of(node)

    def _unfollow(self, replica: ReplicaId) -> None:
        self._heartbeats.leave(replica)
        self._pressure.leave(replica)

    def _replicas_on_disk(self) -> set[ReplicaId]:
        names = (path.name for path in (self._state / "containers").iterdir())
        return {replica for name in names if (replica := replica_id_from_folder(name)) is not None}

    def _attempt(self, replica: ReplicaId) -> Attempt:
        return Attempt(str(self._state / "containers" / replica.folder))

    def _lock(self, replica: ReplicaId) -> asyncio.Lock:
        return self._locks.setdefault(replica, asyncio.Lock())


def _with_logs(used: ReplicaTotals | None, attempt: Attempt) -> ReplicaTotals | None:
    """Add to a replica's usage how much of its output was dropped from the logs, in MiB."""
    plan = attempt.read("plan.json") or {}
    size = sum(left_out(Path(plan[name])) for name in WRITTEN_STREAMS if name in plan)
    return replace(used or ReplicaTotals(), log_left_out_mib=mib_of(size)) if size else used
