"""Implements the operations of a backend that are one request with one answer, over three abstract methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from cockpit.late import Late
from cockpit.model.ids import JobId, Millis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from cockpit.backends.base import Announced, Shown
    from cockpit.model import accounting, asking, cluster, forecast, jobdetail, requests, staging, view
    from cockpit.model import catalogue as catalogues
    from cockpit.model import job as jobs
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.asking import WantedLimit, WantedPriority
    from cockpit.model.directives import Directive
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.spec import JobSpec
    from cockpit.protocol import messages
else:
    cluster, forecast, view = map(Late, ("cockpit.model.cluster", "cockpit.model.forecast", "cockpit.model.view"))
    asking, jobs, messages = map(Late, ("cockpit.model.asking", "cockpit.model.job", "cockpit.protocol.messages"))
    accounting, catalogues = Late("cockpit.model.accounting"), Late("cockpit.model.catalogue")
    staging, jobdetail = Late("cockpit.model.staging"), Late("cockpit.model.jobdetail")
    requests = Late("cockpit.model.requests")

T = TypeVar("T")

_DONE = type(None)


class Verbs(ABC):
    """The part of `Backend` that does not depend on how the engine is reached.

    Subclasses reach it over a socket, with or without an event loop, or as an object of this process.
    """

    @abstractmethod
    async def read(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes nothing and may therefore be repeated."""

    @abstractmethod
    async def act(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes something, exactly once even if the request must be repeated."""

    @abstractmethod
    async def await_answer(self, op: str, args: msgspec.Struct, answer: type[T]) -> T:
        """Run an operation that changes nothing and may take any time."""

    def announce(self, look: Announced) -> bool:
        """Return False: an engine runs no commands that could be shown."""
        del look
        return False

    def identify(self, ids: requests.RequestIds) -> bool:
        """Return False: a backend without a journal remembers no request."""
        del ids
        return False

    @property
    def takes_scripts(self) -> bool:
        return False

    @property
    def reads_this_disk(self) -> bool:
        return False

    async def written(self, spec: JobSpec) -> Shown | None:
        del spec
        return None

    async def direct(self, wanted: Directive) -> JobId | None:
        from cockpit.errors import RequestRefused
        from cockpit.model.refusal import Refusal, RefusalKind

        del wanted
        raise RequestRefused(
            Refusal(RefusalKind.UNAVAILABLE, "Only a Slurm cluster does this: this one is cockpit's own.")
        )

    async def status(self) -> view.EngineStatus:
        return await self.read("status", messages.NoArgs(), view.EngineStatus)

    async def clusters(self) -> list[view.ClusterRow]:
        """Return no clusters: a single cluster has no members."""
        return []

    async def overview(self) -> view.Overview:
        return await self.read("overview", messages.NoArgs(), view.Overview)

    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        return await self.await_answer("explain", messages.JobArgs(job, task), forecast.Outlook)

    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.Expected]:
        return await self.await_answer("starts", messages.StartsArgs(tuple(jobs)), list[forecast.Expected])

    async def predict(self, specs: Sequence[JobSpec]) -> list[forecast.Outlook]:
        return await self.await_answer("predict", messages.PredictArgs(tuple(specs)), list[forecast.Outlook])

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> jobs.Job | None:
        args = messages.WaitArgs(job, timeout_seconds)
        return await self.await_answer("wait", args, jobs.Job | None)  # type: ignore[arg-type] # a union is a type to msgspec

    async def logs(self, request: asking.LogRequest) -> asking.LogChunk:
        ask = self.await_answer if request.wait else self.read
        return await ask("logs", request, asking.LogChunk)

    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        return await self.read("job", messages.JobArgs(job, task), jobdetail.JobDetail)

    async def nodes(self) -> list[view.NodeRow]:
        return await self.read("nodes", messages.NoArgs(), list[view.NodeRow])

    async def holds(self) -> list[view.HoldRow]:
        return await self.read("holds", messages.NoArgs(), list[view.HoldRow])

    async def rules(self) -> cluster.Cluster:
        return await self.read("rules", messages.NoArgs(), cluster.Cluster)

    async def accounts(self) -> view.AccountsShown:
        return await self.read("accounts", messages.NoArgs(), view.AccountsShown)

    async def spending(self, edges: Sequence[Millis]) -> accounting.Spending:
        return await self.read("spending", messages.SpendingArgs(tuple(edges)), accounting.Spending)

    async def change_accounts(self, change: AccountChange) -> None:
        await self.act("change_accounts", messages.ChangeAccountsArgs(change), _DONE)

    async def catalogue(self) -> catalogues.CatalogueShown:
        return await self.read("catalogue", messages.NoArgs(), catalogues.CatalogueShown)

    async def change_catalogue(self, changes: Sequence[catalogues.EntryChange]) -> None:
        await self.act("change_catalogue", messages.ChangeCatalogueArgs(tuple(changes)), _DONE)

    async def queues(self) -> view.QueuesShown:
        return await self.read("queues", messages.NoArgs(), view.QueuesShown)

    async def apply_quota(self, tree: QuotaTree) -> None:
        await self.act("apply_quota", messages.ApplyQuotaArgs(tree), _DONE)

    async def remove_quota(self) -> None:
        await self.act("remove_quota", messages.NoArgs(), _DONE)

    async def set_weights(self, weights: WeightChanges) -> view.WeightsSet:
        return await self.act("set_weights", messages.SetWeightsArgs(weights), view.WeightsSet)

    async def reservations(self) -> list[cluster.Reservation]:
        return await self.read("reservations", messages.NoArgs(), list[cluster.Reservation])

    async def make_reservation(self, reservation: cluster.Reservation) -> None:
        await self.act("make_reservation", messages.ReservationArgs(reservation), _DONE)

    async def end_reservation(self, name: str) -> None:
        await self.act("end_reservation", messages.NameArgs(name), _DONE)

    async def drain_node(self, name: str, reason: str, within_seconds: int | None = None) -> None:
        await self.act("drain_node", messages.DrainArgs(name, reason, within_seconds), _DONE)

    async def resume_node(self, name: str) -> None:
        await self.act("resume_node", messages.NameArgs(name), _DONE)

    async def staged(self) -> list[staging.StagedCopy]:
        return await self.read("staged", messages.NoArgs(), list[staging.StagedCopy])

    async def unstage(self, key: str) -> None:
        await self.act("unstage", messages.NameArgs(key), _DONE)

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        answer = await self.act("submit", messages.SubmitArgs(tuple(specs)), messages.Submitted)
        return [JobId(job) for job in answer.ids]

    async def request(self, request: str) -> requests.RequestOutcome:
        return await self.read("request", messages.RequestArgs(request), requests.RequestOutcome)

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        await self.act("cancel", messages.CancelArgs(job, grace_seconds, task), _DONE)

    async def hold(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("hold", messages.JobArgs(job, task), _DONE)

    async def release(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("release", messages.JobArgs(job, task), _DONE)

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("suspend", messages.JobArgs(job, task), _DONE)

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("resume", messages.JobArgs(job, task), _DONE)

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("requeue", messages.JobArgs(job, task), _DONE)

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        await self.act("set_priority", messages.SetPriorityArgs(job, priority, task), _DONE)

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        await self.act("set_time_limit", messages.SetTimeLimitArgs(job, limit, task), _DONE)

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        await self.act("edit", messages.EditArgs(job, spec), _DONE)

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        await self.act("delete", messages.JobArgs(job, task), _DONE)

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        answer = await self.act("extend_hold", messages.ExtendArgs(job, seconds), messages.HeldUntil)
        return Millis(answer.held_until)

    async def end_hold(self, job: JobId) -> None:
        await self.act("end_hold", messages.JobArgs(job), _DONE)
