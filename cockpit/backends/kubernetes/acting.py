"""Changes objects of a cluster.

Changes are merge patches of the one field that they are about, so that whatever others wrote in the object stays. An
error of the API server becomes a refusal with its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from cockpit.backends.kubernetes.dialects import Dialects
from cockpit.backends.kubernetes.hold_wrapper import added_seconds
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.quota_acts import QuotaActs
from cockpit.backends.kubernetes.resources import NODES, Resource
from cockpit.backends.kubernetes.submitting import manifest_of
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import MERGE_PATCH, AnswerLost, Api
from cockpit.errors import CockpitError, MayBeAccepted, RequestRefused
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.protocol import messages

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.ids import JobNumbers
    from cockpit.model.spec import JobSpec

DRAINED_BECAUSE = "cockpit/drained-because"
"""Annotation with the reason of a drain; Kubernetes' cordon has none."""
_STRICT = ("fieldValidation", "Strict")
_DRY_RUN = ("dryRun", "All")
_KINDS: Mapping[int, RefusalKind] = {
    HTTPStatus.FORBIDDEN: RefusalKind.DENIED,
    HTTPStatus.NOT_FOUND: RefusalKind.NOT_FOUND,
    HTTPStatus.CONFLICT: RefusalKind.CONFLICT,
    HTTPStatus.BAD_REQUEST: RefusalKind.INVALID,
    HTTPStatus.UNPROCESSABLE_ENTITY: RefusalKind.INVALID,
}

Found = Callable[[JobId], tuple[Resource, KubeJob]]
"""Returns the kind of a job's object and the job; refuses an unknown one."""


class _Created(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class Acts:
    """Carries out the changes of one user."""

    def __init__(self, api: Api, numbers: JobNumbers, find: Found, namespace: str) -> None:
        """`namespace`: that of the kubeconfig's context, where jobs without a project go."""
        self._api, self._numbers, self._find, self._namespace = api, numbers, find, namespace
        self._dialects = Dialects(api)
        self.user = ""
        """The user's name on the cluster, which submitted jobs are annotated with."""
        self.served: frozenset[Resource] = frozenset()
        """The kinds of jobs that the cluster serves."""
        self.quota = QuotaActs(api, self._sent)

    async def act(self, args: msgspec.Struct, op: str) -> object:
        """Carry out an operation and return its answer. Raises `RequestRefused`."""
        match args:
            case messages.SubmitArgs():
                return messages.Submitted(tuple(await self.submit(args.specs)))
            case messages.CancelArgs():
                await self._delete(JobId(args.job), args.grace_seconds)
            case messages.SetTimeLimitArgs():
                await self._set_time_limit(args)
            case messages.DrainArgs():
                if args.within_seconds is not None:
                    message = "Kubernetes drains no node by a deadline; leave it out. `kubectl drain` evicts the pods."
                    _refuse(message, RefusalKind.INVALID)
                await self._cordon(args.name, args.reason)
            case messages.NameArgs() if op == "resume_node":
                await self._cordon(args.name, None)
            case messages.ApplyQuotaArgs():
                await self.quota.apply(args.tree)
            case messages.NoArgs() if op == "remove_quota":
                await self.quota.remove()
            case messages.JobArgs():
                await self._change_job(op, JobId(args.job))
            case _:
                raise AssertionError(f"{op} is absent in CAPABILITIES, or has a case here")
        return None

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        """Create the objects of all jobs or of none.

        1. Ask the server for each whether it would accept it. Strict: a field that the cluster's own schema does not
           know is an error, instead of being dropped.
        2. Create them. If one is refused after all, delete those before it.
        """
        plain = [manifest_of(spec, self.served, self._namespace, self.user) for spec in specs]
        manifests = [(resource, await self._dialects.arranged(resource, manifest)) for resource, manifest in plain]
        for resource, manifest in manifests:  # step 1
            await self._create(resource, manifest, (_STRICT, _DRY_RUN))
        created: list[tuple[Resource, ObjectMeta]] = []
        for resource, manifest in manifests:  # step 2
            try:
                created.append((resource, await self._create(resource, manifest, (_STRICT,))))
            except CockpitError:
                for kind, meta in created:
                    await self._api.send("DELETE", kind.path(meta.namespace, meta.name), _deletion(None))
                raise
        return [self._numbers.number(meta) for _, meta in created]

    async def _change_job(self, op: str, number: JobId) -> None:
        resource, job = self._find(number)
        if op == "delete":
            if job.state not in ENDED:
                _refuse(f"Job {_name(job)} is {job.state}; cancel it first.", RefusalKind.CONFLICT)
            await self._delete(number, None)
        elif op in {"hold", "suspend"}:
            await self._suspend(resource, job, op)
        else:
            await self._resume(resource, job)

    async def _suspend(self, resource: Resource, job: KubeJob, op: str) -> None:
        wanted = JobState.QUEUED if op == "hold" else JobState.RUNNING
        if job.is_suspended or (job.state is not wanted and not (op == "suspend" and job.state is JobState.STARTING)):
            now = "suspended already" if job.is_suspended else str(job.state)
            _refuse(f"Job {_name(job)} is {now}, so that {op} changes nothing.", RefusalKind.CONFLICT)
        await self._patch(resource, job, await self._dialects.patch(resource, {"suspend": True}))

    async def _resume(self, resource: Resource, job: KubeJob) -> None:
        if not job.is_suspended:
            _refuse(f"Job {_name(job)} is {job.state} and not suspended.", RefusalKind.CONFLICT)
        await self._patch(resource, job, await self._dialects.patch(resource, {"suspend": False}))

    async def _set_time_limit(self, args: messages.SetTimeLimitArgs) -> None:
        resource, job = self._find(JobId(args.job))
        if job.state in ENDED:
            _refuse(f"Job {_name(job)} has ended.", RefusalKind.CONFLICT)
        present = job.deadline_seconds
        if args.limit.beside and present is None:
            _refuse(f"Job {_name(job)} has no time limit to add to.", RefusalKind.CONFLICT)
        seconds = args.limit.seconds + (present or 0 if args.limit.beside else 0)
        if seconds <= 0:
            _refuse(f"A time limit of {seconds} s is none; write a positive one.", RefusalKind.INVALID)
        if job.placed and added_seconds(job.meta):
            message = f"Job {_name(job)} may be held after a failure; its wrapper keeps the time limit of its start."
            _refuse(message, RefusalKind.CONFLICT)
        # Of a bare pod the server takes lower values only (core/v1 PodSpec, activeDeadlineSeconds).
        fields = {"activeDeadlineSeconds": seconds + added_seconds(job.meta)}
        await self._patch(resource, job, await self._dialects.patch(resource, fields))

    async def _delete(self, number: JobId, grace_seconds: int | None) -> None:
        resource, job = self._find(number)
        await self._sent("DELETE", resource.path(job.meta.namespace, job.meta.name), _deletion(grace_seconds))

    async def _cordon(self, node: str, reason: str | None) -> None:
        patch = {
            "spec": {"unschedulable": reason is not None},
            "metadata": {"annotations": {DRAINED_BECAUSE: reason}},
        }
        await self._sent("PATCH", NODES.path(name=node), msgspec.json.encode(patch))

    async def _patch(self, resource: Resource, job: KubeJob, patch: Mapping[str, Any]) -> None:
        # Strict: another dialect of the kind may lack the field, which would be dropped without a word.
        path = resource.path(job.meta.namespace, job.meta.name)
        await self._sent("PATCH", path, msgspec.json.encode(patch), (_STRICT,))

    async def _create(
        self, resource: Resource, manifest: Mapping[str, Any], query: Sequence[tuple[str, str]]
    ) -> ObjectMeta:
        namespace = str(manifest["metadata"]["namespace"])
        body = await self._sent("POST", resource.path(namespace), msgspec.json.encode(manifest), query)
        return msgspec.json.decode(body, type=_Created).metadata

    async def _sent(self, method: str, path: str, body: bytes, query: Sequence[tuple[str, str]] = ()) -> bytes:
        try:
            if method == "PATCH":
                return await self._api.send(method, path, body, query, content=MERGE_PATCH)
            return await self._api.send(method, path, body, query)
        except AnswerLost as error:
            advice = "`cockpit jobs` and `cockpit nodes` show what became of it."
            raise MayBeAccepted(str(error), advice=advice) from error
        except ApiError as error:
            raise RequestRefused(
                Refusal(_KINDS.get(error.code, RefusalKind.UNAVAILABLE), f"The cluster refuses this: {error.message}")
            ) from error


def _deletion(grace_seconds: int | None) -> bytes:
    # Background: the pods are deleted after their owner, as by kubectl; by default those of a batch/v1 Job would stay.
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return msgspec.json.encode(options)


def _name(job: KubeJob) -> str:
    return f"{job.meta.namespace}/{job.meta.name}"


def _refuse(message: str, kind: RefusalKind) -> NoReturn:
    raise RequestRefused(Refusal(kind, message))


def unknown(job: JobId) -> RequestRefused:
    """Return the refusal of a job that is not listed."""
    return RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_words(job)}."))
