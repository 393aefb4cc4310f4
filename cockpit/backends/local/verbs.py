"""The verbs that are one question to the engine with one answer: their operations, arguments and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from cockpit.late import Late
from cockpit.model.ids import JobId, Millis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from cockpit.model import accounting, cluster, view
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import WantedLimit, WantedPriority
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.spec import JobSpec
    from cockpit.protocol import messages
else:
    cluster, view = Late("cockpit.model.cluster"), Late("cockpit.model.view")
    accounting = Late("cockpit.model.accounting")
    messages = Late("cockpit.protocol.messages")

T = TypeVar("T")

_DONE = type(None)


class Verbs(ABC):
    """The part of `Backend` that does not depend on how the socket is read: with or without an event loop."""

    @abstractmethod
    async def _read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Changes nothing: asked as often as need be."""

    @abstractmethod
    async def _act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Happens once, also where it has to be asked twice."""

    async def status(self) -> view.EngineStatus:
        return await self._read("status", messages.NoArgs(), view.EngineStatus)

    async def overview(self) -> view.Overview:
        return await self._read("overview", messages.NoArgs(), view.Overview)

    async def job(self, job: JobId, *, task: int | None = None) -> view.JobDetail:
        return await self._read("job", messages.JobArgs(job, task), view.JobDetail)

    async def nodes(self) -> list[view.NodeRow]:
        return await self._read("nodes", messages.NoArgs(), list[view.NodeRow])

    async def holds(self) -> list[view.HoldRow]:
        return await self._read("holds", messages.NoArgs(), list[view.HoldRow])

    async def rules(self) -> cluster.Cluster:
        return await self._read("rules", messages.NoArgs(), cluster.Cluster)

    async def accounts(self) -> view.AccountsShown:
        return await self._read("accounts", messages.NoArgs(), view.AccountsShown)

    async def spending(self, edges: Sequence[Millis]) -> accounting.Spending:
        return await self._read("spending", messages.SpendingArgs(tuple(edges)), accounting.Spending)

    async def change_accounts(self, change: AccountChange) -> None:
        await self._act("change_accounts", messages.ChangeAccountsArgs(change), _DONE)

    async def queues(self) -> view.QueuesShown:
        return await self._read("queues", messages.NoArgs(), view.QueuesShown)

    async def apply_quota(self, tree: QuotaTree) -> None:
        await self._act("apply_quota", messages.ApplyQuotaArgs(tree), _DONE)

    async def remove_quota(self) -> None:
        await self._act("remove_quota", messages.NoArgs(), _DONE)

    async def set_weights(self, weights: WeightChanges) -> view.WeightsSet:
        return await self._act("set_weights", messages.SetWeightsArgs(weights), view.WeightsSet)

    async def reservations(self) -> list[cluster.Reservation]:
        return await self._read("reservations", messages.NoArgs(), list[cluster.Reservation])

    async def make_reservation(self, reservation: cluster.Reservation) -> None:
        await self._act("make_reservation", messages.ReservationArgs(reservation), _DONE)

    async def end_reservation(self, name: str) -> None:
        await self._act("end_reservation", messages.NameArgs(name), _DONE)

    async def drain_node(self, name: str, reason: str) -> None:
        await self._act("drain_node", messages.DrainArgs(name, reason), _DONE)

    async def resume_node(self, name: str) -> None:
        await self._act("resume_node", messages.NameArgs(name), _DONE)

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        answer = await self._act("submit", messages.SubmitArgs(tuple(specs)), messages.Submitted)
        return [JobId(job) for job in answer.ids]

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        await self._act("cancel", messages.CancelArgs(job, grace_seconds, task), _DONE)

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("hold", messages.JobArgs(job, task), _DONE)

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("release", messages.JobArgs(job, task), _DONE)

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("suspend", messages.JobArgs(job, task), _DONE)

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("resume", messages.JobArgs(job, task), _DONE)

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("requeue", messages.JobArgs(job, task), _DONE)

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        await self._act("set_priority", messages.SetPriorityArgs(job, priority, task), _DONE)

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        await self._act("set_time_limit", messages.SetTimeLimitArgs(job, limit, task), _DONE)

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        await self._act("edit", messages.EditArgs(job, spec), _DONE)

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        await self._act("delete", messages.JobArgs(job, task), _DONE)

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        answer = await self._act("extend_hold", messages.ExtendArgs(job, seconds), messages.HeldUntil)
        return Millis(answer.held_until)

    async def end_hold(self, job: JobId) -> None:
        await self._act("end_hold", messages.JobArgs(job), _DONE)
