"""When waiting pods would be placed, if kube-scheduler goes on as it does: a simulation over the cluster's objects.

1. Pods are tried one after the other: highest priority first, then the oldest (PrioritySort). Nothing is kept free for
   a pod that does not fit, and pods of one job are placed one by one.
2. Of the nodes that can take a pod it gets the one with most CPU and memory free (NodeResourcesFit, LeastAllocated).
3. A pod that fits nowhere evicts pods of a lower priority, where that makes a node fit (DefaultPreemption).
4. Then the next job ends, its nodes come free, and the waiting pods are tried again there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.node_filters import NodePods, PlacedPod, fits
from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.backends.kubernetes.mapping.quantities import CPU, MEMORY
from cockpit.model.forecast import AwaitedJob
from cockpit.model.ids import JobId, Millis

MOST_TESTS = 300_000
"""The most tests of a pod on a node in one simulation, which then takes some seconds; what is not known then stays
unknown."""
_OFFSET = 1 << 31
_LEAST = {CPU: 100, MEMORY: 200 * 1024**2}
"""What a pod without a request counts as where nodes are compared (schedutil, GetNonzeroRequests)."""


class WaitingJob(NamedTuple):
    """A job with pods that the scheduler has to place."""

    job: JobId
    created_at: Millis
    pods: tuple[PodNeeds, ...]
    """The pods that are not placed yet."""
    run_ms: int | None
    """How long it will likely run; None: unknown."""

    @property
    def order(self) -> tuple[int, Millis, JobId]:
        return -max((each.priority for each in self.pods), default=0), self.created_at, self.job


class Start(NamedTuple):
    """When all pods of a job are placed."""

    at: Millis
    after: tuple[AwaitedJob, ...] = ()
    """The ends on its nodes that came before, and those at its very moment, soonest first."""
    evicts: tuple[JobId, ...] = ()
    """The job of each pod that is evicted for it; 0: none."""


class Simulation:
    """The nodes with their pods, the waiting jobs, and the ends to come. `run` moves it on."""

    def __init__(
        self,
        nodes: Mapping[str, NodePods],
        waiting: Sequence[WaitingJob],
        ends: Iterable[tuple[Millis, JobId]],
        now: Millis,
    ) -> None:
        """`nodes`: not changed. `waiting`: in any order. `ends`: of running jobs, those that are known."""
        self._nodes = {name: each.copy() for name, each in nodes.items()}
        self._now = now
        self._ends = list(ends)
        heapq.heapify(self._ends)
        self._waiting = sorted(waiting, key=lambda each: each.order)
        self._left = {each.job: list(each.pods) for each in self._waiting}
        self._places: dict[JobId, list[str]] = {}
        self._nodes_of: dict[JobId, set[str]] = {}
        for name, node in self._nodes.items():
            for pod in node.pods:
                self._nodes_of.setdefault(pod.job, set()).add(name)
        self._ended_on: dict[str, list[AwaitedJob]] = {}
        self._ended_now: set[AwaitedJob] = set()
        self._evicted: dict[JobId, list[JobId]] = {}
        self._tests = 0
        self.starts: dict[JobId, Start] = {}

    def run(self, job: JobId | None = None, until: Millis | None = None) -> Start | None:
        """Go on until the job starts, or this moment has passed; None: until nothing changes any more."""
        changed: Iterable[str] | None = None
        while True:
            self._try_all(changed)
            if job is not None and job in self.starts:
                return self.starts[job]
            if not self._ends or self._tests >= MOST_TESTS or not any(self._left.values()):
                return None
            changed = self._end_next()
            if until is not None and self._now > until:
                return None

    def left(self, job: JobId) -> int:
        """Return how many pods of the job are not placed yet."""
        return len(self._left[job])

    def _end_next(self) -> set[str]:
        """Let all jobs end that end next, and return the nodes where they had pods."""
        at = self._ends[0][0]
        self._now = max(self._now, at)
        freed: set[str] = set()
        self._ended_now = set()
        while self._ends and self._ends[0][0] == at:
            _, job = heapq.heappop(self._ends)
            self._ended_now.add(AwaitedJob(job, self._now))
            for name in self._nodes_of.pop(job, ()):
                node = self._nodes[name]
                for pod in [pod for pod in node.pods if pod.job == job]:
                    node.remove(pod)
                freed.add(name)
                self._ended_on.setdefault(name, []).append(AwaitedJob(job, self._now))
        return freed

    def _try_all(self, changed: Iterable[str] | None) -> None:
        """Try every waiting pod: on the nodes that have changed, or on all. Steps 1 to 3."""
        failed: set[bytes] = set()
        for waits in self._waiting:
            left = self._left[waits.job]
            for needs in list(left):
                if needs.key in failed or self._tests >= MOST_TESTS:
                    continue
                everywhere = changed is None or needs.depends_on_pods
                names = sorted(self._nodes if everywhere else changed or ())
                name = self._place(needs, names) or self._evict_for(needs, waits.job, names)
                if name is None:
                    # What the pods of a job wait for together may be each other.
                    if not needs.depends_on_pods:
                        failed.add(needs.key)
                    continue
                self._nodes[name].add(PlacedPod(needs, waits.job))
                self._places.setdefault(waits.job, []).append(name)
                self._nodes_of.setdefault(waits.job, set()).add(name)
                left.remove(needs)
            if not left and waits.job not in self.starts:
                self._start(waits)

    def _place(self, needs: PodNeeds, names: Sequence[str]) -> str | None:
        """Return which of the nodes the pod gets; None: it fits on none (step 2)."""
        best: tuple[float, str] | None = None
        for name in names:
            self._tests += 1
            node = self._nodes[name]
            if fits(needs, node, self._nodes):
                score = _free_share(needs, node)
                if best is None or score > best[0]:
                    best = score, name
        return best[1] if best is not None else None

    def _evict_for(self, needs: PodNeeds, job: JobId, names: Sequence[str]) -> str | None:
        """Evict pods of a lower priority for a pod, and return the node that it gets; None: that helps nowhere."""
        if not needs.preempts:
            return None
        best: tuple[tuple[int, ...], str, list[PlacedPod]] | None = None
        for name in names:
            if (victims := self._victims(needs, self._nodes[name])) is not None:
                cost = _cost(victims)
                if best is None or cost < best[0]:
                    best = cost, name, victims
        if best is None:
            return None
        _, name, victims = best
        for each in victims:
            self._nodes[name].remove(each)
        self._evicted.setdefault(job, []).extend(each.job for each in victims)
        return name

    def _victims(self, needs: PodNeeds, node: NodePods) -> list[PlacedPod] | None:
        """Return the fewest pods of a lower priority without which the node can take the pod; None: it cannot."""
        lower = [each for each in node.pods if each.needs.priority < needs.priority]
        if not lower:
            return None
        self._tests += 1
        trial = node.copy()
        for each in lower:
            trial.remove(each)
        others = {**self._nodes, node.name: trial}
        if not fits(needs, trial, others):
            return None
        # Those of the highest priority may stay first.
        victims = []
        for each in sorted(lower, key=lambda pod: -pod.needs.priority):
            trial.add(each)
            if not fits(needs, trial, others):
                trial.remove(each)
                victims.append(each)
        return victims or None

    def _start(self, waits: WaitingJob) -> None:
        ended = {each for name in self._places.get(waits.job, ()) for each in self._ended_on.get(name, ())}
        # An end on another node may lift a rule about other pods.
        ended |= self._ended_now
        evicts = tuple(self._evicted.get(waits.job, ()))
        after = tuple(sorted(ended, key=lambda each: (each.end_at, each.job)))
        self.starts[waits.job] = Start(self._now, after, evicts)
        if waits.run_ms is not None:
            heapq.heappush(self._ends, (Millis(self._now + waits.run_ms), waits.job))


def _cost(victims: Sequence[PlacedPod]) -> tuple[int, ...]:
    """Return what the scheduler compares of victims on different nodes, in this order: the highest priority, the sum of
    priorities, the number, and the latest start of those of the highest priority (pickOneNodeForPreemption)."""
    highest = max(each.needs.priority for each in victims)
    since = min(each.since for each in victims if each.needs.priority == highest)
    # Offset as there, so that one more victim of a negative priority costs more, too.
    total = sum(each.needs.priority + _OFFSET for each in victims)
    return highest, total, len(victims), -since


def _free_share(needs: PodNeeds, node: NodePods) -> float:
    """Return the part of CPU and memory that the node has free behind the pod."""
    wants = dict(needs.request)
    total = 0.0
    for name, least in _LEAST.items():
        used = sum(dict(each.needs.request).get(name, least) for each in node.pods) + wants.get(name, least)
        whole = node.allocatable.get(name, 0)
        total += max(0.0, (whole - used) / whole) if whole else 0.0
    return total
