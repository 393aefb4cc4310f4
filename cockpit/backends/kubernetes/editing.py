"""Changes fields of a job: its time limit, its priority, and its number of pods.

Each change is decided by the object as it is at that moment, and sent with its version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.backends.kubernetes.dialects import Dialects
from cockpit.backends.kubernetes.hold_wrapper import added_seconds
from cockpit.backends.kubernetes.mapping.kube_jobs import KUEUE_CLASS
from cockpit.backends.kubernetes.mapping.planning import shown_spec
from cockpit.backends.kubernetes.objects.workload import WORKER
from cockpit.backends.kubernetes.priority_classes import PriorityClasses
from cockpit.backends.kubernetes.resources import JOBS, PODS, TRAINING_JOBS, VOLCANO_JOBS
from cockpit.backends.kubernetes.volcano_acts import set_tasks
from cockpit.backends.kubernetes.writing import Decide, ObjectWriter, RawObject, merge_patch, refuse
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, job_words
from cockpit.model.job import ENDED
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import NO_LIMIT_SECONDS, JobSpec

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.training_acts import TrainingActs
    from cockpit.model.asking import WantedLimit, WantedPriority

_POLICY, _DEADLINE = "runPolicy", "activeDeadlineSeconds"
_CHANGEABLE = ("time_limit_seconds", "priority", "qos", "nodes", "elastic")
_NOT_COMPARED = frozenset({*_CHANGEABLE, "output", "mode"})
"""Fields that an edit changes; `output` and, for kinds that have none, `mode` are what cockpit shows and in no object.
"""


class JobEditor:
    """Changes fields of jobs for one user."""

    def __init__(
        self,
        writer: ObjectWriter,
        dialects: Dialects,
        classes: PriorityClasses,
        training: TrainingActs,
        cards: Callable[[], ClusterCards],
    ) -> None:
        """`cards`: returns the cluster's cards, with which jobs are shown."""
        self._writer, self._dialects, self._classes, self._cards = writer, dialects, classes, cards
        self.training = training

    async def set_time_limit(self, number: JobId, resource: Resource, job: KubeJob, limit: WantedLimit) -> None:
        refuse_ended(number, job)
        fields = await self._limit_of(resource)

        def decide(present: RawObject) -> Mapping[str, Any]:
            deadline = _deadline(fields, present)
            if limit.beside and deadline is None:
                refuse(f"Job {job_name(number, job)} has no time limit to add to.", RefusalKind.CONFLICT)
            own = (deadline or 0) - added_seconds(job.meta)
            return _with_limit(fields, job, number, limit.seconds + (own if limit.beside else 0))

        await self._change(resource, job, decide)

    async def set_priority(self, number: JobId, resource: Resource, job: KubeJob, wanted: WantedPriority) -> None:
        """Give a job another class: for Kueue that of its label, else that of pods that do not exist yet."""
        refuse_ended(number, job)
        if job.queued is not None:
            name = await self._classes.named(wanted, of_kueue=True)
            await self._change(resource, job, lambda _: {"metadata": {"labels": {KUEUE_CLASS: name}}})
            return
        _refuse_pods(number, job, "The priority of a pod never changes")
        name = await self._classes.named(wanted, of_kueue=False)
        try:
            await self._change(resource, job, lambda present: _with_class(resource, present, name))
        except RequestRefused as error:
            # The server's message is the whole pod template.
            if resource != JOBS or error.refusal.kind is not RefusalKind.INVALID:
                raise
            message = (
                f"Job {job_name(number, job)} of batch/v1 keeps its pod template, and so its PriorityClass: cancel it "
                "and submit a copy."
            )
            raise RequestRefused(Refusal(RefusalKind.INVALID, message)) from error

    async def edit(self, number: JobId, resource: Resource, job: KubeJob, wanted: JobSpec) -> None:
        """Change what differs from the job as it is shown. Refused, with the fields, where anything else differs."""
        shown = shown_spec(job, self._cards())
        # A job of several pods without a mode of its own has none in what is shown, and needs one in a job file.
        fixed = [
            name for name in JobSpec.__struct_fields__ if name not in _NOT_COMPARED and _differs(shown, wanted, name)
        ]
        if shown.mode is not None and wanted.mode is not shown.mode:
            fixed.append("mode")
        if fixed:
            what = " and no ".join(fixed)
            message = f"Kubernetes changes no {what} of a {job.kind}: cancel it and submit a copy (clone)."
            refuse(message, RefusalKind.INVALID)
        refuse_ended(number, job)
        if not any(_differs(shown, wanted, name) for name in _CHANGEABLE):
            refuse("The edit changes nothing.", RefusalKind.INVALID)
        is_urgency = shown.priority is not wanted.priority or shown.qos != wanted.qos
        name = await self._class_of(number, job, shown, wanted) if is_urgency else None
        is_longer = wanted.time_limit_seconds != shown.time_limit_seconds
        fields = await self._limit_of(resource) if is_longer else {}

        def decide(present: RawObject) -> Mapping[str, Any] | None:
            changed = deepcopy(dict(present))
            if is_longer:
                _merge(changed, _with_limit(fields, job, number, wanted.time_limit_seconds))
            if is_urgency and job.queued is not None:
                _merge(changed, {"metadata": {"labels": {KUEUE_CLASS: name}}})
            elif is_urgency:
                _set_class(resource, changed, name)
            if wanted.nodes != shown.nodes or wanted.elastic != shown.elastic:
                _set_size(number, resource, job, changed, shown, wanted)
            return merge_patch(present, changed) or None

        await self._change(resource, job, decide)
        if resource == TRAINING_JOBS and _workers(wanted) != _workers(shown):
            await self.training.scale(job, _workers(wanted))

    async def _limit_of(self, resource: Resource) -> Mapping[str, Any]:
        """Return a patch of the time limit, which shows where the kind has it."""
        if resource == VOLCANO_JOBS:
            message = "A Job of Volcano has no time limit of its own, and that of its pods cannot be changed."
            refuse(message, RefusalKind.INVALID)
        return await self._dialects.patch(resource, {_DEADLINE: None})

    async def _class_of(self, number: JobId, job: KubeJob, shown: JobSpec, wanted: JobSpec) -> str | None:
        if job.queued is None:
            _refuse_pods(number, job, "The priority of a pod never changes")
        by_name = wanted.qos != shown.qos and wanted.qos is not None
        urgency = wanted.qos if by_name and wanted.qos is not None else wanted.priority
        return await self._classes.named(urgency, of_kueue=job.queued is not None)

    async def _change(self, resource: Resource, job: KubeJob, decide: Decide) -> None:
        meta = job.meta
        written = await self._writer.change(resource, meta.namespace, meta.name, decide, uid=meta.uid)
        if written is not None:
            await self._writer.until_seen(written)


def _differs(one: JobSpec, other: JobSpec, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _refuse_pods(number: JobId, job: KubeJob, rule: str) -> None:
    """Refuse the change of a pod template while there are pods of it."""
    if job.kind == PODS.kind:
        refuse(f"{rule}, and job {job_name(number, job)} is a pod: cancel it and submit a copy.", RefusalKind.CONFLICT)
    if any(not pod.has_ended for pod in job.pods):
        message = (
            f"{rule}, and job {job_name(number, job)} has pods: hold it, which deletes them, change it, and release it."
        )
        refuse(message, RefusalKind.CONFLICT)


def _deadline(fields: Mapping[str, Any], present: RawObject) -> int | None:
    spec = present.get("spec") or {}
    seconds = (spec if _DEADLINE in fields["spec"] else spec.get(_POLICY) or {}).get(_DEADLINE)
    return seconds if isinstance(seconds, int) else None


def _with_limit(fields: Mapping[str, Any], job: KubeJob, number: JobId, seconds: int) -> Mapping[str, Any]:
    """Return the patch of the time limit. `fields`: a patch of the deadline, which shows where the kind has it."""
    if seconds <= 0:
        refuse(f"A time limit of {seconds} s is none; write a positive one.", RefusalKind.INVALID)
    if job.placed and added_seconds(job.meta):
        message = (
            f"Job {job_name(number, job)} may be held after a failure; its wrapper keeps the time limit of its start."
        )
        refuse(message, RefusalKind.CONFLICT)
    # Of a bare pod the server takes lower values only (core/v1 PodSpec, activeDeadlineSeconds).
    limit = {_DEADLINE: seconds + added_seconds(job.meta) if seconds < NO_LIMIT_SECONDS else None}
    return {"spec": limit if _DEADLINE in fields["spec"] else {_POLICY: limit}}


def _with_class(resource: Resource, present: RawObject, name: str | None) -> Mapping[str, Any]:
    changed = deepcopy(dict(present))
    _set_class(resource, changed, name)
    return merge_patch(present, changed)


def _set_class(resource: Resource, changed: dict[str, Any], name: str | None) -> None:
    """Give all pod templates of an object a PriorityClass; None: that of the cluster's default."""
    if resource == VOLCANO_JOBS:
        # Volcano lets only the job's own class be changed, by which its queue is ordered.
        changed["spec"]["priorityClassName"] = name
        return
    templates = list(_templates(changed.get("spec") or {}))
    if not templates:
        refuse(
            f"The pods of a {resource.kind} are described by its runtime, and so is their priority.",
            RefusalKind.INVALID,
        )
    for template in templates:
        pod = template.setdefault("spec", {})
        # The number that the server made of the old class would be refused beside another class.
        for field in ("priorityClassName", "priority", "preemptionPolicy"):
            pod.pop(field, None)
        if name is not None:
            pod["priorityClassName"] = name
    policy = (changed["spec"].get("runPolicy") or {}).get("schedulingPolicy")
    if policy and policy.get("priorityClass"):
        policy["priorityClass"] = name or ""


def _templates(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any part of an object
    """Yield the pod templates inside of a workload's spec: fields named `template` with containers."""
    if isinstance(value, list):
        for each in value:
            yield from _templates(each)
    elif isinstance(value, dict):
        inner = value.get("template")
        if isinstance(inner, dict) and "containers" in (inner.get("spec") or {}):
            yield inner
            return
        for each in value.values():
            yield from _templates(each)


def _set_size(
    number: JobId, resource: Resource, job: KubeJob, changed: dict[str, Any], shown: JobSpec, wanted: JobSpec
) -> None:
    """Change how many pods a job has, in the way that its kind has for it.

    1. An elastic PyTorchJob has bounds, and a number of workers that may change while it runs.
    2. A Job runs so many pods at a time; if each has an index, it completes as many (elastic indexed Jobs).
    3. Volcano starts and ends pods of a job's tasks as their numbers say.
    4. Any other job's pods know their number, so that it changes only while there are none.
    """
    spec = changed["spec"]
    if shown.elastic is not None or wanted.elastic is not None:  # step 1
        _set_workers(spec, job, shown, wanted)
    elif resource == JOBS:  # step 2
        if spec.get("completionMode") == "Indexed":
            if spec.get("completions") != spec.get("parallelism"):
                message = (
                    f"nodes: job {job_name(number, job)} completes {spec.get('completions')} indices in turn; their "
                    "number stays."
                )
                refuse(message, RefusalKind.INVALID)
            spec["completions"] = wanted.nodes
        elif (most := spec.get("completions")) is not None and wanted.nodes > most:
            message = f"nodes: job {job_name(number, job)} completes {most} pods in all; more at a time change nothing."
            refuse(message, RefusalKind.INVALID)
        spec["parallelism"] = wanted.nodes
    elif resource == VOLCANO_JOBS:  # step 3
        set_tasks(spec, wanted.nodes)
    else:  # step 4
        _refuse_pods(number, job, "Its pods know how many they are")
        roles = _roles(spec)
        others = sum(int(each.get("replicas", 1)) for name, each in roles.items() if name != "Worker")
        if "Worker" not in roles or wanted.nodes <= others:
            message = (
                f"nodes: a {job.kind} with the roles {', '.join(roles) or 'of its runtime'} has no {wanted.nodes} pods."
            )
            refuse(message, RefusalKind.INVALID)
        roles["Worker"]["replicas"] = wanted.nodes - others


def _set_workers(spec: dict[str, Any], job: KubeJob, shown: JobSpec, wanted: JobSpec) -> None:
    was, now = shown.elastic, wanted.elastic
    if was is None or now is None:
        refuse(f"elastic: a {job.kind} is elastic from its submission or never.", RefusalKind.INVALID)
    sizes = {"workers": now.workers, "min_workers": now.min_workers, "max_workers": now.max_workers}
    if now != replace(was, **sizes):
        refuse("elastic: of an elastic job only workers, min_workers and max_workers change.", RefusalKind.INVALID)
    if not 1 <= now.min_workers <= now.workers <= now.max_workers:
        message = f"elastic: {now.workers} workers are not between {now.min_workers} and {now.max_workers}, its bounds."
        refuse(message, RefusalKind.INVALID)
    bounds = {"minReplicas": now.min_workers, "maxReplicas": now.max_workers}
    if "elasticPolicy" in spec:
        spec["elasticPolicy"] |= bounds
        _roles(spec)["Worker"]["replicas"] = now.workers
    elif (now.min_workers, now.max_workers) != (was.min_workers, was.max_workers):
        # Of a TrainingJob the operator itself changes the number of workers.
        roles = _roles(spec)
        roles[next(name for name in roles if name.lower() == WORKER)] |= bounds


def _workers(spec: JobSpec) -> int:
    """Return the number of workers; 0 for a job that is not elastic."""
    return 0 if spec.elastic is None else spec.elastic.workers


def _roles(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the roles of a workload with their replicas; empty where another object has them."""
    return next((each for name, each in spec.items() if name.endswith("ReplicaSpecs") and each), {})


def _merge(content: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for name, value in patch.items():
        if isinstance(value, Mapping):
            _merge(content.setdefault(name, {}), value)
        else:
            content[name] = value


def job_name(number: JobId, job: KubeJob) -> str:
    return f"{job_words(number)} ({job.meta.namespace}/{job.meta.name})"


def refuse_ended(number: JobId, job: KubeJob) -> None:
    if job.state in ENDED:
        refuse(f"Job {job_name(number, job)} has ended.", RefusalKind.CONFLICT)
