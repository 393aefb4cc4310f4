"""When jobs that wait for Kueue are admitted, and when their pods then have nodes: one simulation of both.

1. Kueue's rules are applied again and again while admitted jobs end.
2. An admitted job's pods are created at that moment. Kueue binds them to the nodes of the flavors that the job has; the
   scheduler places them beside all others.
3. A job whose pods find no nodes at once ends later, and keeps its quota for longer: then the admissions are predicted
   anew, with these delays, until they stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds, needs_of
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, WaitingJob
from cockpit.backends.kubernetes.mapping.run_times import RunTimes
from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView, is_plain
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload, ResourceFlavor
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.model.forecast import AwaitedJob
from cockpit.model.ids import JobId, Millis
from cockpit.sched.admission.forecast import (
    Admission,
    AdmissionState,
    PredictedAdmissions,
    predict_admissions,
)

ROUNDS = 3
"""How often the admissions are predicted at most; the delays of later rounds are small."""


class QueuedJob(NamedTuple):
    """A job of Kueue."""

    number: JobId
    job: KubeJob
    workload: KueueWorkload


class QueuedStart(NamedTuple):
    """What is predicted of a job that waits for Kueue."""

    admitted_at: Millis
    at: Millis | None
    """When all its pods have nodes; None: unknown."""
    flavors: Mapping[str, tuple[str, ...]]
    """The flavors of each pod set."""
    after: tuple[AwaitedJob, ...]
    """The ends that it waits for, the soonest first: of jobs that have its quota, or later its nodes."""


def gone_at(job: KubeJob) -> Millis:
    """Return when the pods of a preempted job are killed at the latest; 0: none is being deleted."""
    return max((millis(pod.metadata.deletion_timestamp) or Millis(0) for pod in job.placed), default=Millis(0))


class QueueTimes:
    """What the simulation knows of the jobs beside their quotas."""

    def __init__(
        self,
        view: SchedulerView,
        jobs: Mapping[str, QueuedJob],
        flavors: Mapping[str, ResourceFlavor],
        priority: Callable[[str], int],
    ) -> None:
        """`view`: the nodes and their pods. `jobs`: by the uids of their workloads. `priority`: returns the value of a
        class of pods."""
        self.view, self.jobs, self._flavors, self._priority = view, jobs, flavors, priority

    def predict(self, queues: AdmissionState, lengths: RunTimes) -> dict[str, QueuedStart]:
        """Return the starts of the waiting jobs that are known to be admitted. `lengths`: how long jobs run."""
        delays: dict[str, int | None] = {}
        for _ in range(ROUNDS):
            admissions = self._admissions(queues, lengths, delays)  # step 1
            nodes = self._on_nodes(admissions, lengths)  # step 2
            late = self._delays(queues, admissions, nodes)
            if late == delays:
                break
            delays = late  # step 3
        return {
            key: self._start(self.jobs[key].number, each, nodes)
            for key, each in admissions.admissions.items()
            if key in self.jobs
        }

    def pods(self, workload: KueueWorkload, flavors: Mapping[str, tuple[str, ...]]) -> Iterator[PodNeeds]:
        """Yield what each pod needs that the job's controller creates once it has these flavors."""
        for each in workload.spec.pod_sets:
            spec, meta = each.template.spec, each.template.metadata
            needs = needs_of(spec, workload.metadata.namespace, meta.labels if meta is not None else None)
            if spec.priority is None:
                needs = replace(needs, priority=self._priority(spec.priority_class_name))
            for name in flavors.get(each.name, ()):
                if (flavor := self._flavors.get(name)) is not None:
                    selector = {**needs.selector, **(flavor.spec.node_labels or {})}
                    tolerations = (*needs.tolerations, *(flavor.spec.tolerations or ()))
                    needs = replace(needs, selector=selector, tolerations=tolerations)
            yield from (needs for _ in range(each.count))

    def _admissions(
        self, queues: AdmissionState, lengths: RunTimes, delays: Mapping[str, int | None]
    ) -> PredictedAdmissions:
        """Return the admissions if jobs start so many milliseconds after they are admitted; None: never."""

        def run_ms(key: str) -> int | None:
            each, delay = self.jobs.get(key), delays.get(key, 0)
            length = lengths.run_ms(each.job, each.number) if each is not None else None
            return None if length is None or delay is None else length + delay

        def end_at(key: str) -> Millis | None:
            each = self.jobs.get(key)
            if each is None:
                return None
            if each.workload.is_ending:
                return max(self.view.now, gone_at(each.job))
            if each.number not in self.view.waiting:
                known = lengths.end_at(each.job, each.number, self.view.now)
                # A job without pods has only been admitted.
                if known is not None or each.job.started_at is not None:
                    return known
            length = run_ms(key)
            return None if length is None else Millis(self.view.now + length)

        return predict_admissions(queues, self.view.now, {key: end_at(key) for key in queues.admitted}, run_ms)

    def _on_nodes(self, plan: PredictedAdmissions, lengths: RunTimes) -> Simulation:
        """Return the nodes after all that was admitted has been placed, as far as it finds nodes."""
        ends = {number: at for at, number in self.view.ends}
        for key, at in plan.preemptions.items():
            if (each := self.jobs.get(key)) is not None:
                ends[each.number] = min(at, ends.get(each.number, at))
        admitted = [(self.jobs[key], each) for key, each in plan.admissions.items() if key in self.jobs]
        arrivals = [
            WaitingJob(job.number, each.at, pods, lengths.run_ms(job.job, job.number))
            for job, each in admitted
            if self.view.nodes and self._is_placed_later(job) and (pods := tuple(self.pods(job.workload, each.flavors)))
        ]
        by_time = ((at, number) for number, at in ends.items())
        nodes = Simulation(self.view.nodes, self.view.waiting.values(), by_time, self.view.now, arrivals)
        nodes.run()
        return nodes

    def _is_placed_later(self, each: QueuedJob) -> bool:
        """Return whether Kubernetes' own scheduler places its pods, none of which waits for a node yet."""
        return is_plain(each.job) and each.number not in self.view.waiting

    def _delays(self, queues: AdmissionState, plan: PredictedAdmissions, nodes: Simulation) -> dict[str, int | None]:
        """Return how long after its admission each job starts that finds no nodes at once; None: never, as far as is
        known."""
        admitted = {key: each.at for key, each in plan.admissions.items()}
        admitted |= dict.fromkeys(queues.admitted.keys() - plan.preemptions.keys() - admitted.keys(), self.view.now)
        found: dict[str, int | None] = {}
        for key, at in admitted.items():
            number = self.jobs[key].number if key in self.jobs else JobId(0)
            if nodes.finds_no_nodes(number):
                found[key] = None
            elif (start := nodes.starts.get(number)) is not None and start.at > at:
                found[key] = start.at - at
        return found

    def _start(self, number: JobId, admission: Admission, nodes: Simulation) -> QueuedStart:
        start = nodes.starts.get(number)
        if start is not None and start.at > admission.at:
            return QueuedStart(admission.at, start.at, admission.flavors, start.after)
        numbers = ((self.jobs[key].number if key in self.jobs else JobId(0), at) for key, at in admission.after)
        after = tuple(AwaitedJob(*each) for each in reversed(list(numbers)))
        return QueuedStart(
            admission.at, None if nodes.finds_no_nodes(number) else admission.at, admission.flavors, after
        )
