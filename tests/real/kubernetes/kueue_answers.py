"""What cockpit's rules of admission say before, and what a real Kueue manager does then.

In each step one job of every situation is submitted, or one that runs is deleted; when the manager has decided, its
decisions are compared with the prediction from the objects as they were before the step.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, admission_state, workload_of
from cockpit.backends.kubernetes.mapping.kueue_shortage import CODES
from cockpit.backends.kubernetes.objects.kueue import (
    ClusterQueue,
    KueueCohort,
    KueueWorkload,
    LocalQueue,
    ResourceFlavor,
)
from cockpit.model.ids import Millis
from cockpit.sched.admission.workloads import Verdict
from tests.real.kubernetes.daemons import wait_until
from tests.real.kubernetes.kueue import API, GROUP, condition, flavor, is_admitted, priority_class, workloads
from tests.real.kubernetes.kueue_situations import FLAVORS, PRIORITIES, MadeJob, Situation, made_situation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.sched.admission.forecast import AdmissionState
    from tests.real.kubernetes.api import Api
    from tests.real.kubernetes.cluster import RealKubernetes

AFTERWARDS = Millis(1 << 50)
"""A moment after all others: of equal jobs those that were admitted last are preempted first."""
STEADY_SECONDS = 3.0
"""The manager has decided when nothing has changed for so long."""
ENDS = 3
ADMITTED, PREEMPTS = "admitted at once", "admitted after preemption"
NEXT, NOBODY = "which jobs are admitted after an end", "no job is admitted after an end"
SILENT = "not admitted, without a reason"


class Answer(NamedTuple):
    """One decision."""

    situation: str
    shape: str
    question: str
    expected: str
    """What cockpit said."""
    actual: str
    about: str = ""
    """What was the case before."""

    @property
    def is_right(self) -> bool:
        return self.expected == self.actual


class Measurement:
    """Makes the situations of a seed in a namespace, and collects the answers."""

    def __init__(self, cluster: RealKubernetes, namespace: str, seed: int, count: int) -> None:
        self._api, self._namespace, self._random = cluster.admin, namespace, Random(seed)
        self.situations = [made_situation(self._random, number) for number in range(count)]
        self.answers: list[Answer] = []

    def run(self) -> list[Answer]:
        self._make_queues()
        submitted = {each.name: [job for wave in each.waves for job in wave] for each in self.situations}
        for step in range(max(map(len, submitted.values()))):
            chosen = [
                (each, submitted[each.name][step]) for each in self.situations if step < len(submitted[each.name])
            ]
            self._submit(chosen)
        for _ in range(ENDS):
            self._end()
        return self.answers

    def _make_queues(self) -> None:
        spot = {"key": "spot", "value": "true", "effect": "NoSchedule"}
        flavors = [flavor(name, {"model": name}, [spot] if name == FLAVORS[-1] else ()) for name in FLAVORS]
        self._api.apply(*flavors, *(priority_class(name, value) for name, value in PRIORITIES.items()))
        for each in self.situations:
            self._api.apply(*each.cohorts, *each.queues, *each.local_queues(self._namespace))
        own = {queue["metadata"]["name"] for each in self.situations for queue in each.queues}

        def are_active() -> bool:
            return all(_is_active(each) for each in self._items("clusterqueues") if each["metadata"]["name"] in own)

        wait_until("not all queues are active", are_active)

    def _submit(self, chosen: list[tuple[Situation, MadeJob]]) -> None:
        """Submit one job of each situation, and compare."""
        objects = self._objects()
        expected = {}
        for _, job in chosen:
            state = admission_state(objects)
            workload = self._workload(objects, state, job)
            verdict = state.judge(workload)
            state.add(workload)
            admitted = state.settle(AFTERWARDS)
            expected[job.name] = _class(verdict, is_admitted=workload.key in admitted)
        path = f"/apis/batch/v1/namespaces/{self._namespace}/jobs"
        self._api.create_many(path, [job.manifest() for _, job in chosen])
        found = self._settled({job.name for _, job in chosen})
        for situation, job in chosen:
            actual = _actual_class(found[job.name])
            said = expected[job.name]
            # A job that was preempted for is admitted as well; only the prediction says by which way.
            if said == PREEMPTS and actual == ADMITTED:
                actual = said
            # Of equal jobs the manager judges the first alone.
            if actual == SILENT and said not in {ADMITTED, PREEMPTS}:
                said = actual
            self.answers.append(Answer(situation.name, situation.shape, actual, said, actual))

    def _end(self) -> None:
        """Delete one admitted job of each situation, and compare who is admitted for it."""
        objects, names = self._objects(), self._names()
        ends, had = {}, {}
        for situation in self.situations:
            running = sorted(
                names[each.metadata.uid]
                for each in objects.workloads
                if each.is_admitted and names.get(each.metadata.uid, "").startswith(f"{situation.name}-")
            )
            if running:
                ends[situation] = self._random.choice(running)
                had[situation.name] = set(running)
        uids = {name: uid for uid, name in names.items()}
        expected = {}
        for situation, name in ends.items():
            state = admission_state(objects)
            # Workloads that wait now have been looked at and set aside.
            state.settle(AFTERWARDS)
            state.end(uids[name])
            state.settle(AFTERWARDS)
            expected[situation.name] = _of_situation(situation, (names[key] for key in state.admitted if key in names))
        for name in ends.values():
            path = f"/apis/batch/v1/namespaces/{self._namespace}/jobs/{name}"
            self._api.delete(path, propagationPolicy="Background")
        found = self._settled(set(), gone=set(ends.values()))
        running_now = [name for name, each in found.items() if is_admitted(each)]
        for situation, ended in ends.items():
            actual = _of_situation(situation, running_now)
            before = had[situation.name]
            question = NEXT if set(actual.split()) - before else NOBODY
            about = f"{ended} ended of {' '.join(sorted(before))}"
            said = expected[situation.name]
            self.answers.append(Answer(situation.name, situation.shape, question, said, actual, about))

    def _workload(self, objects: KueueObjects, state: AdmissionState, job: MadeJob) -> Any:
        """The job as Kueue will see it."""
        manifest = job.manifest()
        pod_set = {"name": "main", "count": job.pods, "template": manifest["spec"]["template"]}
        meta = {"name": job.name, "namespace": self._namespace, "uid": job.name}
        spec = {"queueName": job.queue, "priority": PRIORITIES[job.priority], "podSets": [pod_set]}
        queued = msgspec.convert({"metadata": meta, "spec": spec}, KueueWorkload, strict=False)
        local = {(each.metadata.namespace, each.metadata.name): each for each in objects.local_queues}
        flavors = {each.metadata.name: each for each in objects.flavors}
        workload = workload_of(queued, local, state.queues, flavors)
        assert workload is not None
        latest = max((each.metadata.created_at for each in objects.workloads), default=0)
        return msgspec.structs.replace(workload, since=Millis(latest + 1))

    def _settled(self, new: set[str], gone: set[str] = frozenset()) -> dict[str, dict[str, Any]]:
        """Wait until the manager has decided about the new jobs and nothing changes any more."""
        seen: dict[str, Any] = {"print": None, "since": 0.0, "found": {}}

        def is_steady() -> bool:
            found = workloads(self._api, self._namespace)
            printed = json.dumps({name: each.get("status") for name, each in found.items()}, sort_keys=True)
            if printed != seen["print"]:
                seen.update(print=printed, since=time.monotonic(), found=found)
            if any(map(_is_preempting, found.values())):
                return False
            return new <= found.keys() and not gone & found.keys() and time.monotonic() - seen["since"] > STEADY_SECONDS

        wait_until("the manager does not come to rest", is_steady, seconds=300)
        return seen["found"]

    def _items(self, plural: str) -> list[dict[str, Any]]:
        return self._api.get(f"{API}/{plural}")["items"]

    def _names(self) -> dict[str, str]:
        """The names of the jobs by the uids of their workloads."""
        found = workloads(self._api, self._namespace)
        return {each["metadata"]["uid"]: name for name, each in found.items()}

    def _objects(self) -> KueueObjects:
        return decoded(self._api, "v1beta2")


def decoded(api: Api, version: str) -> KueueObjects:
    """Everything of Kueue in one version of its API, as cockpit reads it."""
    kinds = {
        "workloads": KueueWorkload,
        "clusterqueues": ClusterQueue,
        "localqueues": LocalQueue,
        "cohorts": KueueCohort,
        "resourceflavors": ResourceFlavor,
    }
    lists = (api.get(f"/apis/{GROUP}/{version}/{plural}")["items"] for plural in kinds)
    return KueueObjects(*(tuple(_structs(each, kind)) for each, kind in zip(lists, kinds.values(), strict=True)))


def _structs(items: list[dict[str, Any]], kind: type) -> Iterator[Any]:
    for each in items:
        yield msgspec.convert(each, kind, strict=False)


def table(answers: list[Answer]) -> list[str]:
    """The table of right and wrong answers by question, as Markdown."""
    right, wrong = Counter[str](), Counter[str]()
    for each in answers:
        (right if each.is_right else wrong)[each.question] += 1
    lines = ["| what the manager did | decisions | foretold | wrong |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {each} | {right[each] + wrong[each]} | {right[each]} | {wrong[each]} |"
        for each in sorted(right.keys() | wrong.keys())
    ]
    lines.append(f"| **all** | {len(answers)} | {right.total()} | {wrong.total()} |")
    return lines


def _class(verdict: Verdict, *, is_admitted: bool) -> str:
    if is_admitted:
        return PREEMPTS if verdict.victims else ADMITTED
    return CODES[verdict.cause] if verdict.cause is not None else SILENT


def _actual_class(workload: dict[str, Any]) -> str:
    if is_admitted(workload):
        return ADMITTED
    return condition(workload, "QuotaReserved").get("reason", SILENT)


def _is_preempting(workload: dict[str, Any]) -> bool:
    """Whether the manager waits for the pods of preempted jobs, or this is such a job."""
    if condition(workload, "QuotaReserved").get("status") == "True":
        return condition(workload, "Evicted").get("status") == "True"
    return condition(workload, "QuotaReserved").get("reason") == "WaitingForPreemptedWorkloads"


def _of_situation(situation: Situation, names: Any) -> str:
    """The admitted jobs of a situation, as one text."""
    return " ".join(sorted(name for name in names if name.startswith(f"{situation.name}-")))


def _is_active(queue: dict[str, Any]) -> bool:
    return condition(queue, "Active").get("status") == "True"
