"""What Kueue's queues are likely to do with the jobs that wait: their order, and the forecast of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects, admission_state
from cockpit.backends.kubernetes.mapping.run_times import RunTimes
from cockpit.model.forecast import Forecast, NoBound
from cockpit.sched.admission.workloads import Mode, Preempts
from cockpit.sched.forecast.bounds import likely_range
from cockpit.sched.forecast.runtime_predictors import P90RuntimePredictor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.mapping.kueue_starts import QueuedStart, QueueTimes
    from cockpit.model.ids import JobId
    from cockpit.sched.admission.forecast import AdmissionState
    from cockpit.sched.admission.workloads import AdmissionWorkload


class QueuePrediction:
    """The queues at one moment, with what is likely to come.

    Starts are predicted twice: if jobs run as long as usual, and if they run about as long as they ever do. The second
    ends the range of likely starts. Where queues share a cohort by weight (fair sharing), nothing is predicted of jobs
    that compete: Kueue then orders them by what their queues use, which this copy of its rules does not do.
    """

    def __init__(self, objects: KueueObjects, times: QueueTimes, jobs: Mapping[JobId, KubeJob]) -> None:
        """`times`: the jobs of Kueue and the nodes; `jobs`: all that the cluster still has."""
        self.objects = objects
        self.state: AdmissionState = admission_state(objects)
        self.waiting = {each.key: each for queued in self.state.waiting.values() for each in queued}
        self.times, self.now = times, times.view.now
        self.checked = {each.metadata.name for each in objects.cluster_queues if each.checks}
        """The queues whose jobs need admission checks beside their quota."""
        self._starts: Mapping[str, QueuedStart] = {}
        self._careful: Mapping[str, QueuedStart] = {}
        if not objects.has_fair_sharing or len(self.waiting) == 1:
            self._starts = times.predict(self.state, RunTimes(jobs))
            if any(each.at != self.now for each in self._starts.values()):
                self._careful = times.predict(self.state, RunTimes(jobs, P90RuntimePredictor))

    def ahead(self, key: str) -> list[str]:
        """Return the jobs before this one in its cluster queue, the first one first."""
        workload = self.waiting.get(key)
        order = [each.key for each in self.state.waiting.get(workload.queue, ())] if workload is not None else []
        return order[: order.index(key)] if key in order else []

    def start(self, key: str) -> QueuedStart | None:
        """Return when the job is likely admitted and has nodes; None: its admission is not known."""
        return self._starts.get(key)

    def is_admitted_now(self, key: str) -> bool:
        """Return whether the job is admitted at once, without a preemption or a check before it."""
        start, workload = self._starts.get(key), self.waiting.get(key)
        if start is None or workload is None or start.admitted_at > self.now or workload.queue in self.checked:
            return False
        return self.state.judge(workload).mode is Mode.FIT

    def forecast(self, key: str) -> Forecast:
        """Return the likely start of a job, with the range of such starts. There is never a latest one."""
        start, workload = self._starts.get(key), self.waiting.get(key)
        if start is None or workload is None or start.at is None:
            return Forecast()
        why = self._why_no_bound(workload, start)
        if start.at <= self.now:
            return Forecast(now=self.is_admitted_now(key), likely_at=start.at, after=start.after, no_bound=why)
        careful = self._careful.get(key)
        first, last = likely_range(self.now, start.at, careful.at if careful is not None else None, why)
        return Forecast(likely_at=start.at, after=start.after, likely_from=first, likely_to=last, no_bound=why)

    def _why_no_bound(self, workload: AdmissionWorkload, start: QueuedStart) -> NoBound:
        """Return why no latest start is promised: none ever is, since later jobs of higher priority come first."""
        if workload.queue in self.checked:
            return NoBound.ADMISSION_CHECKS
        if not self.times.view.nodes:
            return NoBound.NODES_UNSEEN
        if start.at is not None and start.at > start.admitted_at:
            return NoBound.NOTHING_RESERVED
        if self.state.judge(workload).level:
            return NoBound.BORROWED_QUOTA
        if self.state.queues[workload.queue].within is not Preempts.NEVER or self._may_be_reclaimed(workload.queue):
            return NoBound.PREEMPTION
        return NoBound.LATER_SUBMISSIONS

    def _may_be_reclaimed(self, queue: str) -> bool:
        quotas = self.state.quotas
        cohort = set(quotas.ancestors(queue))
        return any(
            each.reclaim is not Preempts.NEVER and each.name != queue and cohort & set(quotas.ancestors(each.name))
            for each in self.state.queues.values()
        )
