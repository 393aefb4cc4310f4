"""The parts of one context's connection, each with those that it needs, and when they are ready to answer.

Parts: `Session` is the connection, `Inventory` the copy of the cluster's objects, `JobList` makes rows of them, `Acts`
changes them, `JobRecords` has the jobs' records and events, and `Explainer` says why jobs wait and when they may start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.access_reviews import AccessReviews
from cockpit.backends.kubernetes.acting import ActParts, Acts
from cockpit.backends.kubernetes.capabilities import CAPABILITIES, of_fleet_host, without_rights
from cockpit.backends.kubernetes.dialects import Dialects
from cockpit.backends.kubernetes.editing import JobEditor
from cockpit.backends.kubernetes.explaining import Explainer
from cockpit.backends.kubernetes.fleet.acts import FleetActs
from cockpit.backends.kubernetes.holds import Holds
from cockpit.backends.kubernetes.inventory import Inventory
from cockpit.backends.kubernetes.job_list import JobList
from cockpit.backends.kubernetes.priority_classes import PriorityClasses
from cockpit.backends.kubernetes.quota_acts import QuotaActs
from cockpit.backends.kubernetes.records import JobRecords
from cockpit.backends.kubernetes.requeueing import Requeuer
from cockpit.backends.kubernetes.resources import DEVICES, PODS
from cockpit.backends.kubernetes.rights import Rights
from cockpit.backends.kubernetes.session import Changes, Session
from cockpit.backends.kubernetes.training_acts import TrainingActs
from cockpit.backends.kubernetes.writing import ObjectWriter
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol import messages

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    import msgspec

    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.model.capabilities import Capabilities
    from cockpit.model.jobrow import JobRow
    from cockpit.runtime.clock import Timekeeper


class ContextOptions(NamedTuple):
    """What is known of a context beside its kubeconfig."""

    history: Path | None = None
    """The file of what was seen of jobs; None: it is forgotten when cockpit ends."""
    namespaces: tuple[str, ...] = ()
    """The namespaces that are read; empty: all that the user may list."""
    manifests: Path | None = None
    """The folder for manifests of jobs that are being created once more; None: that for temporary files."""
    reach_member: Callable[[str, str], Callable[[], Api] | None] = lambda _name, _address: None
    """Returns what connects to a member of a fleet by the user's own context for its name or address; None: there is
    none, and the host's proxy is used."""


DEFAULT_OPTIONS = ContextOptions()


class ConnectedCluster:
    """One context's cluster. Sends no request before `ready`."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Api],
        namespace: str,
        clock: Timekeeper,
        random: Random,
        user: str,
        options: ContextOptions,
    ) -> None:
        """`connect`: makes a connection; each event loop has its own. `namespace`: that of the kubeconfig's context.
        `user`: the name in the kubeconfig, until the server tells the user's."""
        namespaces = options.namespaces
        # A job is submitted to the context's namespace, but to none that is not shown.
        self.namespace = namespace if not namespaces or namespace in namespaces else namespaces[0]
        self.user = user
        self.api, self.changes = api, changes = connect(), Changes()
        self.inventory = Inventory(api, self.namespace, random, changes.notify, namespaces)
        self.session = Session(api, self.inventory, changes, clock, user)
        self.holds = Holds(api, self.inventory.jobs.mark, lambda: self.user)
        self.rights = Rights(api)
        self.list = JobList(self.inventory, self.holds.shown, clock, self.rights.access)
        self.records = JobRecords(api, self.inventory, self.list, self.holds, clock, options.history)
        self.explainer = Explainer(api, self.inventory, self.list, clock, name, user, self.namespace)
        self.classes = PriorityClasses(api)
        self.writer, dialects = ObjectWriter(api, self.inventory, changes), Dialects(api)
        self._training = TrainingActs(self.writer, self.inventory)
        editor = JobEditor(self.writer, dialects, self.classes, self._training, lambda: self.inventory.cards)
        fleet = FleetActs(self.writer, self.inventory.fleet, self.inventory.jobs.job)
        parts = ActParts(editor, QuotaActs(api, self.writer), fleet)
        self.acts = Acts(self.writer, dialects, parts, self.list.numbers, self.list.found, self.namespace)
        self._requeuer = Requeuer(api, self.writer, self.inventory, self.acts.queue, options.manifests)
        self._reviews = AccessReviews(self.rights, self.inventory, self.list)
        api.refused = self._reviews.doubt

    @property
    def capabilities(self) -> Capabilities:
        served = self.inventory.queue_kinds if self.session.started else None
        known = without_rights(CAPABILITIES, self.inventory.absent, served)
        return of_fleet_host(known) if self.inventory.fleet.is_host else known

    @property
    def trouble(self) -> tuple[str, ...]:
        """What of the cluster cannot be read, as sentences."""
        absent = self.inventory.absent.items()
        # Few users may read the devices of resource claims, and few clusters have any.
        shown = (f"{each.shown} cannot be read: {why}" for each, why in absent if each not in DEVICES)
        said = dict.fromkeys((*shown, *self.inventory.unseen))
        members, missing = self.inventory.fleet.silent_members, self.explainer.platform.missing
        return (*said, *members, *filter(None, [missing]), *self.inventory.devices.trouble)

    async def ready(self) -> None:
        """Wait until everything has been listed once. Raises `Unreachable` while the server has never answered."""
        await self.session.ready()
        # A screen asks several questions at once, none of which may have to wait: a key is handled between them.
        await asyncio.sleep(0)
        self.user = self.acts.user = self._training.user = self.session.user
        self.acts.served = self.inventory.served
        self.acts.queue.takes_jobs_of = self.inventory.takes_jobs_of
        self.acts.queue.kueue_queues = self.inventory.kueue.queue_names()
        await self.list.settle()
        await self._reviews.learn()
        await self.explainer.platform.learn()
        await self.holds.begin(lambda: list(self.list.jobs.values()))

    async def listed(self) -> None:
        """Wait as `ready` does. Refused where the user may list no pods, since an empty answer would mean none."""
        await self.ready()
        if (why := self.inventory.absent.get(PODS)) and not self.list.rows:
            message = (
                f"Pods cannot be listed: {why}. If you may list those of other namespaces, name them: "
                f'-c \'kube:{self.api.context}?namespaces=A,B\', or namespaces = ["A", "B"] of the cluster in '
                "config.toml."
            )
            raise RequestRefused(Refusal(RefusalKind.DENIED, message))

    async def row(self, job: JobId, task: int | None = None) -> JobRow:
        """Return the row of a job. Refused for an unknown one."""
        await self.ready()
        self.list.refresh()
        return self.list.known_row(job, task)

    async def act(self, args: msgspec.Struct, op: str) -> object:
        """Carry out a change and return its answer. Raises `RequestRefused`."""
        match args:
            case messages.JobArgs() if op == "delete" and args.job in self.list.gone:
                self.list.forget(JobId(args.job))
                self.changes.notify()
            case messages.JobArgs() if op == "requeue":
                await self._requeuer.requeue(JobId(args.job), *self.list.found(JobId(args.job)))
            case messages.JobArgs() if op == "end_hold":
                await self.holds.end(self.list.found(JobId(args.job))[1])
            case messages.ExtendArgs():
                return messages.HeldUntil(await self.holds.extend(self.list.found(JobId(args.job))[1], args.seconds))
            case _:
                return await self.acts.act(args, op)
        return None

    async def close(self) -> None:
        await self._reviews.close()
        self.records.close()
        await self.holds.close()
        await self.session.close()
