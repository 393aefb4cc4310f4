"""Delay the containers of a fleet's job until every member has placed its part of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.attempt import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    from cockpit.model.ids import JobId, ReplicaId
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.staging import Progress, StagedCopy
    from cockpit.runtime.containers.entering import EnteredShell, Terminal
    from cockpit.runtime.fleet.reports import MemberReports
    from cockpit.runtime.host import ContainerRuntime

NEVER_BEGAN = ExitStatus(lost="its fleet took it back before it began")


class Gate:
    """A `runtime.host.ContainerRuntime` that wraps a member's own and delays the starts of fleet jobs."""

    def __init__(self, inner: ContainerRuntime, reports: MemberReports, is_part: Callable[[JobId], bool]) -> None:
        """`is_part` returns whether a job of the member is a part of a fleet's job."""
        self._inner = inner
        self._reports = reports
        self._is_part = is_part
        self._closed: dict[ReplicaId, StartReplica] = {}
        self._opened_jobs: set[JobId] = set()

    async def stage(self, effect: StageReplica) -> None:
        """Stage at once: the job is placed already, and only its start must wait."""
        if effect.replica.job not in self._opened_jobs and self._is_part(effect.replica.job):
            self._reports.placed(effect.replica.job)
        await self._inner.stage(effect)

    async def start(self, effect: StartReplica) -> None:
        if effect.replica.job in self._opened_jobs or not self._is_part(effect.replica.job):
            await self._inner.start(effect)
            return
        self._closed[effect.replica] = effect
        self._reports.placed(effect.replica.job)

    async def open(self, job: JobId) -> None:
        """Start the delayed containers of the job, and delay none of its containers any more."""
        # First, so that a start that arrives during the loop is not delayed any more.
        self._opened_jobs.add(job)
        for replica in [each for each in self._closed if each.job == job]:
            await self._inner.start(self._closed.pop(replica))

    async def signal(self, effect: SignalReplica) -> None:
        # It was delayed and has no container, so its end is reported here.
        if self._closed.pop(effect.replica, None) is not None:
            self._reports.replica_ended(effect.replica, NEVER_BEGAN)
        else:
            await self._inner.signal(effect)

    async def check(self, effect: CheckNodes) -> None:
        await self._inner.check(effect)

    async def freeze(self, effect: FreezeReplica) -> None:
        await self._inner.freeze(effect)

    async def thaw(self, effect: ThawReplica) -> None:
        await self._inner.thaw(effect)

    async def write_workers_file(self, effect: WriteWorkersFile) -> None:
        await self._inner.write_workers_file(effect)

    def staging(self, replica: ReplicaId) -> Progress | None:
        return self._inner.staging(replica)

    async def copies(self) -> list[StagedCopy]:
        return await self._inner.copies()

    async def remove_copy(self, key: str) -> bool:
        return await self._inner.remove_copy(key)

    async def used(self, replica: ReplicaId) -> ReplicaUse | None:
        return await self._inner.used(replica)

    async def keep(self, effect: KeepContainer) -> None:
        await self._inner.keep(effect)

    async def remove(self, effect: RemoveContainer) -> None:
        # A delayed replica that is removed must not be started by a later `open`.
        self._closed.pop(effect.replica, None)
        await self._inner.remove(effect)

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        await self._inner.adopt(expected, kept)

    async def enter(
        self, replica: ReplicaId, command: Sequence[str], *, terminal: Terminal | None, label: str
    ) -> EnteredShell:
        return await self._inner.enter(replica, command, terminal=terminal, label=label)
