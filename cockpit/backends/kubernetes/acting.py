"""Changes a cluster for its user: submits, suspends, cancels and deletes jobs, and cordons nodes.

What is changed in the fields of a job is in `editing`; what is sent to the server in `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.dialects import Dialects
from cockpit.backends.kubernetes.editing import JobEditor, job_name, refuse_ended
from cockpit.backends.kubernetes.fleet.acts import FleetActs
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.nodes import DRAINED_BECAUSE
from cockpit.backends.kubernetes.mapping.planning import OUTPUT
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.queue_acts import QueueActs
from cockpit.backends.kubernetes.quota_acts import QuotaActs
from cockpit.backends.kubernetes.resources import NODES, Resource
from cockpit.backends.kubernetes.ssh_secret import SshSecrets
from cockpit.backends.kubernetes.submitting import manifest_of
from cockpit.backends.kubernetes.writing import ObjectWriter, refuse
from cockpit.errors import CockpitError, RequestRefused
from cockpit.launch.checks import submission_errors
from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, JobState
from cockpit.model.refusal import RefusalKind
from cockpit.protocol import messages

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.ids import JobNumbers
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.model.spec import JobSpec

Found = Callable[[JobId], tuple[Resource, KubeJob]]
"""Returns the kind of a job's object and the job; refuses an unknown one."""


class ActParts(NamedTuple):
    """What carries out changes of a job's fields, of quotas, and of policies of a fleet."""

    editor: JobEditor
    quota: QuotaActs
    fleet: FleetActs


class Accepted(NamedTuple):
    """The objects of one job, as the server would accept them."""

    resource: Resource
    """The job's kind."""
    manifest: dict[str, Any]
    policy: dict[str, Any] | None
    """The policy of the fleet that is created with it; None: there is none."""


class Acts:
    """Carries out the changes of one user."""

    def __init__(
        self,
        writer: ObjectWriter,
        dialects: Dialects,
        parts: ActParts,
        numbers: JobNumbers,
        find: Found,
        namespace: str,
    ) -> None:
        """`namespace`: that of the kubeconfig's context, where jobs without a project go."""
        self._writer, self._editor, self._numbers, self._find = writer, parts.editor, numbers, find
        self._dialects, self._namespace = dialects, namespace
        self.user = ""
        """The user's name on the cluster, which submitted jobs are annotated with."""
        self.served: frozenset[Resource] = frozenset()
        """The kinds of jobs that the cluster serves."""
        self.quota, self.fleet = parts.quota, parts.fleet
        self.queue = QueueActs(writer, dialects, parts.editor.training)
        self._secrets = SshSecrets(writer)

    async def act(self, args: msgspec.Struct, op: str) -> object:
        """Carry out an operation and return its answer. Raises `RequestRefused`."""
        match args:
            case messages.SubmitArgs():
                return messages.Submitted(tuple(await self.submit(args.specs)))
            case messages.CancelArgs():
                await self._cancel(JobId(args.job), args.grace_seconds)
            case messages.SetTimeLimitArgs():
                await self._editor.set_time_limit(JobId(args.job), *self._find(JobId(args.job)), args.limit)
            case messages.SetPriorityArgs():
                await self._editor.set_priority(JobId(args.job), *self._find(JobId(args.job)), args.priority)
            case messages.EditArgs():
                await self._editor.edit(JobId(args.job), *self._find(JobId(args.job)), args.spec)
            case messages.DrainArgs() | messages.NameArgs():
                await self._change_node(args)
            case messages.ApplyQuotaArgs() | messages.NoArgs():
                await self.quota.act(args)
            case messages.JobArgs():
                await self._change_job(op, JobId(args.job))
            case _:
                raise AssertionError(f"{op} is absent in CAPABILITIES, or has a case here")
        return None

    async def _change_node(self, args: messages.DrainArgs | messages.NameArgs) -> None:
        """Drain a node, or without a reason resume it."""
        if isinstance(args, messages.NameArgs):
            await self._cordon(args.name, None)
            return
        if args.within_seconds is not None:
            message = "Kubernetes drains no node by a deadline; leave it out. `kubectl drain` evicts the pods."
            refuse(message, RefusalKind.INVALID)
        await self._cordon(args.name, args.reason)

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        """Create the objects of all jobs or of none.

        1. Check each job by cockpit's own rules, and by what any Kubernetes has.
        2. Ask the server for each whether it would accept it. Strict: a field that the cluster's own schema does not
           know is an error, instead of being dropped. On the host of a fleet the same with each one's policy.
        3. Create them, each after its policy. If one is refused after all, delete those before it.
        """
        accepted = await self._accepted(specs)  # steps 1 and 2
        created: list[tuple[Resource, ObjectMeta]] = []
        jobs: list[ObjectMeta] = []
        for resource, manifest, policy in accepted:  # step 3
            try:
                if policy is not None:
                    created.append(await self.fleet.create(policy))
                meta = await self._writer.create(resource, manifest)
                if policy is not None:
                    await self.fleet.give(created[-1], resource, meta)
                created.append((resource, meta))
                await self._secrets.make(resource, meta)
                jobs.append(meta)
            except CockpitError:
                for kind, meta in created:
                    await self._writer.delete(kind, meta)
                raise
        await self._writer.until_seen(*jobs)
        return [self._numbers.number(meta) for meta in jobs]

    async def objects(self, specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
        """Return the objects that `submit` would create, in that order; of a Secret no keys, which are made with it."""
        return [
            each
            for resource, manifest, policy in await self._accepted(specs)
            for each in (policy, manifest, self._secrets.shown(resource, manifest))
            if each is not None
        ]

    async def _accepted(self, specs: Sequence[JobSpec]) -> list[Accepted]:
        """Return the manifests as the server would accept them: steps 1 and 2 of `submit`."""
        manifests = [(kind, await self.queue.accepted(kind, each)) for kind, each in await self._manifests(specs)]
        for resource, manifest in manifests:
            await self._secrets.check(resource, manifest)
        if not self.fleet.is_host:
            return [Accepted(*each, None) for each in manifests]
        of_fleet = zip(specs, manifests, strict=True)
        return [Accepted(*each, await self.fleet.policy(spec, *each)) for spec, each in of_fleet]

    async def _manifests(self, specs: Sequence[JobSpec]) -> list[tuple[Resource, dict[str, Any]]]:
        """Return the manifests. Raises `RequestRefused` with a line for each error, led by the path of the field."""
        manifests, errors = [], []
        for place, spec in enumerate(specs):
            # A copy of a job has in place of an output folder what is shown of it; a manifest has neither.
            wrong = submission_errors(replace(spec, output="/") if spec.output == OUTPUT else spec)
            try:
                # A field beyond its bounds may have no form in a manifest.
                if not wrong:
                    resource, manifest = manifest_of(spec, self.served, self._namespace, self.user)
                    arranged = await self._dialects.arranged(resource, manifest)
                    # On a fleet the policy says that a job waits in a queue; a suspended job would be so on its member.
                    enqueued = arranged if self.fleet.is_host else self.queue.enqueued(resource, arranged, spec)
                    manifests.append((resource, enqueued))
            except RequestRefused as error:
                wrong = [error.refusal.message]
            errors += [f"jobs[{place}].{each}" for each in wrong]
        if errors:
            refuse("\n".join(errors), RefusalKind.INVALID)
        return manifests

    async def _change_job(self, op: str, number: JobId) -> None:
        resource, job = self._find(number)
        if op == "delete":
            if job.state not in ENDED:
                refuse(f"Job {job_name(number, job)} is {job.state}; cancel it first.", RefusalKind.CONFLICT)
            await self._delete(resource, job, None)
        elif op in {"hold", "suspend"}:
            await self._suspend(resource, job, number, op)
        else:
            await self._resume(resource, job, number)

    async def _suspend(self, resource: Resource, job: KubeJob, number: JobId, op: str) -> None:
        if op == "hold" and job.waits_in_queue and not job.is_held:
            await self.queue.set_held(job, number, held=True)
            return
        wanted = JobState.QUEUED if op == "hold" else JobState.RUNNING
        if job.is_suspended or (job.state is not wanted and not (op == "suspend" and job.state is JobState.STARTING)):
            now = "suspended already" if job.is_suspended else str(job.state)
            refuse(f"Job {job_name(number, job)} is {now}, so that {op} changes nothing.", RefusalKind.CONFLICT)
        await self.queue.set_suspended(resource, job, suspended=True)

    async def _resume(self, resource: Resource, job: KubeJob, number: JobId) -> None:
        if job.waits_in_queue and job.state not in ENDED:
            await self.queue.set_held(job, number, held=False)
            return
        if self.fleet.is_suspended(job):
            await self.fleet.dequeue(number, job)
            return
        if not job.is_suspended or job.state in ENDED:
            refuse(f"Job {job_name(number, job)} is {job.state} and not suspended.", RefusalKind.CONFLICT)
        await self.queue.set_suspended(resource, job, suspended=False)

    async def _cancel(self, number: JobId, grace_seconds: int | None) -> None:
        resource, job = self._find(number)
        refuse_ended(number, job)
        await self._delete(resource, job, grace_seconds)

    async def _delete(self, resource: Resource, job: KubeJob, grace_seconds: int | None) -> None:
        await self._writer.delete(resource, job.meta, grace_seconds=grace_seconds)
        await self.fleet.remove_policy(job)
        await self._writer.until_other(job.meta)

    async def _cordon(self, node: str, reason: str | None) -> None:
        # By its name alone: a machine that was registered anew is still the one that is meant.
        patch = {
            "spec": {"unschedulable": reason is not None},
            "metadata": {"annotations": {DRAINED_BECAUSE: reason}},
        }
        await self._writer.until_seen(await self._writer.patch(NODES, "", node, patch))
