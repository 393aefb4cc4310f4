"""When waiting pods would be placed, if kube-scheduler goes on as it does: a simulation over the cluster's objects.

1. Pods are tried one after the other: highest priority first, then the oldest (PrioritySort). Nothing is kept free for
   a pod that does not fit, and pods of one job are placed one by one.
2. Of the nodes that can take a pod it gets the one with most CPU and memory free (NodeResourcesFit, LeastAllocated).
3. A pod that fits nowhere evicts pods of a lower priority, where that makes a node fit (DefaultPreemption).
4. Then the next job ends, its nodes come free, and the waiting pods are tried again there; or a job arrives whose queue
   manager kept it back until then, and its pods are tried on all nodes.

Pods that fit alike are one class: where one fails, all others of the class fail, too. So an end costs a test for each
class and each node that it frees, however many pods wait.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.node_filters import NodePods, PlacedPod, fits, fixed_obstacle
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


class _PodClass:
    """Waiting pods that fit alike, the first in the scheduler's order first."""

    __slots__ = ("needs", "nodes", "pods")

    def __init__(self, needs: PodNeeds, nodes: frozenset[str]) -> None:
        self.needs, self.nodes = needs, nodes
        """`nodes`: those that its selectors and tolerations allow."""
        self.pods: deque[tuple[int, WaitingJob]] = deque()
        """For each pod its place in the order, and its job."""


class Simulation:
    """The nodes with their pods, the waiting jobs, and the ends to come. `run` moves it on."""

    def __init__(
        self,
        nodes: Mapping[str, NodePods],
        waiting: Iterable[WaitingJob],
        ends: Iterable[tuple[Millis, JobId]],
        now: Millis,
        arrivals: Iterable[WaitingJob] = (),
    ) -> None:
        """`nodes`: not changed. `waiting`: in any order. `ends`: of running jobs, those that are known.
        `arrivals`: jobs of which the pods are created later, at `created_at`."""
        self.nodes = {name: each.copy() for name, each in nodes.items()}
        """The nodes as they are at the moment of the simulation."""
        self._now = now
        self._ends = list(ends)
        heapq.heapify(self._ends)
        later = {each.job: each for each in arrivals}
        ordered = sorted((*waiting, *later.values()), key=lambda each: each.order)
        self._left = {each.job: len(each.pods) for each in ordered}
        self._waits = sum(self._left.values())
        self._has_rules = any(node.apart for node in nodes.values()) or any(
            needs.depends_on_pods for each in ordered for needs in each.pods
        )
        self._classes: dict[bytes, _PodClass] = {}
        self._eligible: dict[bytes, frozenset[str]] = {}
        self._arrivals: list[tuple[Millis, int, WaitingJob]] = []
        for place, each in enumerate(ordered):
            if each.job in later:
                self._arrivals.append((each.created_at, place, each))
            else:
                self._classify(place, each)
        heapq.heapify(self._arrivals)
        self._places: dict[JobId, list[str]] = {}
        self._nodes_of: dict[JobId, set[str]] = {}
        for name, node in self.nodes.items():
            for pod in node.pods:
                self._nodes_of.setdefault(pod.job, set()).add(name)
        self._ended_on: dict[str, list[AwaitedJob]] = {}
        self._ended_now: set[AwaitedJob] = set()
        self._evicted: dict[JobId, list[JobId]] = {}
        self._tests = 0
        self.starts: dict[JobId, Start] = {}
        self.placed = 0
        """The number of waiting pods that have been placed."""

    def run(self, job: JobId | None = None, until: Millis | None = None) -> Start | None:
        """Go on until the job starts, or this moment has passed; None: until nothing changes any more."""
        self.try_on(self.nodes)
        return self.go_on(job, until)

    def go_on(self, job: JobId | None = None, until: Millis | None = None) -> Start | None:
        """Go on likewise, without a try of what waits before the next end."""
        while True:
            if job is not None and job in self.starts:
                return self.starts[job]
            nothing_comes = not (self._ends or self._arrivals)
            if nothing_comes or self._tests >= MOST_TESTS or not self._waits:
                return None
            freed, arrived = self._go_to_next_event()
            if until is not None and self._now > until:
                return None
            if freed:
                self.try_on(freed)
            for each in arrived:
                self.try_on(self.nodes, each)

    def left(self, job: JobId) -> int:
        """Return how many pods of the job are not placed yet."""
        return self._left[job]

    def left_needs(self, job: JobId) -> PodNeeds | None:
        """Return what one of the job's pods needs that are not placed yet; None: there is none."""
        return next(
            (each.needs for each in self._classes.values() if any(waits.job == job for _, waits in each.pods)), None
        )

    def places(self, job: JobId) -> list[str]:
        """Return the node of each placed pod of a job that waited."""
        return self._places.get(job, [])

    def finds_no_nodes(self, job: JobId) -> bool:
        """Return whether pods of the job are known to find no nodes, whatever ends; not, if the simulation stopped
        before that."""
        return self._left.get(job, 0) > 0 and self._tests < MOST_TESTS

    def try_on(self, names: Collection[str], job: JobId | None = None) -> None:
        """Try every waiting pod on these nodes, or on all nodes those that rules about other pods bind; steps 1 to 3.
        `job`: try its pods alone."""
        while True:
            before = self.placed
            self._try_classes(names, job)
            # A pod that has been placed may be what another one has to be beside.
            if not self._has_rules or self.placed == before:
                return

    def _classify(self, place: int, waits: WaitingJob) -> None:
        """Add the pods of a job to the classes. `place`: the job's in the scheduler's order."""
        for needs in waits.pods:
            # What a pod is called matters only to rules about other pods.
            key = needs.key if self._has_rules else needs.anonymous_key
            name = key + f"/{needs.priority}/{needs.preempts}".encode()
            if name not in self._classes:
                if key not in self._eligible:
                    nodes = self.nodes.items()
                    self._eligible[key] = frozenset(each for each, node in nodes if fixed_obstacle(needs, node) is None)
                self._classes[name] = _PodClass(needs, self._eligible[key])
            self._classes[name].pods.append((place, waits))

    def _go_to_next_event(self) -> tuple[set[str], list[JobId]]:
        """Go on to the next moment at which jobs end or arrive; return the nodes that come free, and the new jobs."""
        freed: set[str] = set()
        # A job that waits for another's end comes in the same moment, and finds its nodes free.
        if not self._arrivals or (self._ends and self._ends[0][0] <= self._arrivals[0][0]):
            freed = self._end_next()
        else:
            self._now, self._ended_now = max(self._now, self._arrivals[0][0]), set()
        arrived = []
        while self._arrivals and self._arrivals[0][0] <= self._now:
            _, place, waits = heapq.heappop(self._arrivals)
            self._classify(place, waits)
            arrived.append(waits.job)
        for each in self._classes.values() if arrived else ():
            # Those that came later may be before others in the scheduler's order.
            each.pods = deque(sorted(each.pods, key=lambda pod: pod[0]))
        return freed, arrived

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
                node = self.nodes[name]
                for pod in [pod for pod in node.pods if pod.job == job]:
                    node.remove(pod)
                freed.add(name)
                self._ended_on.setdefault(name, []).append(AwaitedJob(job, self._now))
        return freed

    def _try_classes(self, names: Collection[str], job: JobId | None) -> None:
        """Try the first pod of each class; one that is placed makes way for the next, one that fails ends its class."""
        # The number of the class decides nothing: two classes never have pods of equal places and one job's are alike.
        heads = [(each.pods[0][0], number) for number, each in enumerate(self._classes.values()) if each.pods]
        heapq.heapify(heads)
        numbered = list(self._classes.values())
        while heads and self._tests < MOST_TESTS:
            _, number = heapq.heappop(heads)
            each = numbered[number]
            waits = each.pods[0][1]
            if job is not None and waits.job != job:
                continue
            name = self._place_or_evict(each, waits.job, names)
            if name is None:
                continue
            each.pods.popleft()
            self._put(waits, each.needs, name)
            if each.pods:
                heapq.heappush(heads, (each.pods[0][0], number))

    def _place_or_evict(self, each: _PodClass, job: JobId, names: Collection[str]) -> str | None:
        usable = each.nodes if each.needs.depends_on_pods or len(names) == len(self.nodes) else each.nodes & set(names)
        ordered = sorted(usable)
        return self._place(each.needs, ordered) or self._evict_for(each.needs, job, ordered)

    def _put(self, waits: WaitingJob, needs: PodNeeds, name: str) -> None:
        self.nodes[name].add(PlacedPod(needs, waits.job, self._now))
        self._places.setdefault(waits.job, []).append(name)
        self._nodes_of.setdefault(waits.job, set()).add(name)
        self.placed += 1
        self._waits -= 1
        self._left[waits.job] -= 1
        if not self._left[waits.job]:
            self._start(waits)

    def _place(self, needs: PodNeeds, names: Sequence[str]) -> str | None:
        """Return which of the nodes the pod gets; None: it fits on none (step 2)."""
        best: tuple[float, str] | None = None
        self._tests += len(names)
        for name in names:
            node = self.nodes[name]
            if node.has_room(needs) and fits(needs, node, self.nodes):
                score = _free_share(needs, node)
                if best is None or score > best[0]:
                    best = score, name
        return best[1] if best is not None else None

    def _evict_for(self, needs: PodNeeds, job: JobId, names: Sequence[str]) -> str | None:
        """Evict pods of a lower priority for a pod, and return the node that it gets; None: that helps nowhere."""
        if not needs.preempts:
            return None
        best: tuple[tuple[int, ...], str, list[PlacedPod]] | None = None
        self._tests += len(names)
        for name in names:
            if (victims := self._victims(needs, self.nodes[name])) is not None:
                cost = _cost(victims)
                if best is None or cost < best[0]:
                    best = cost, name, victims
        if best is None:
            return None
        _, name, victims = best
        for each in victims:
            self.nodes[name].remove(each)
        self._evicted.setdefault(job, []).extend(each.job for each in victims)
        return name

    def _victims(self, needs: PodNeeds, node: NodePods) -> list[PlacedPod] | None:
        """Return the fewest pods of a lower priority without which the node can take the pod; None: it cannot."""
        lower = [each for each in node.pods if each.needs.priority < needs.priority]
        if not lower:
            return None
        trial = node.copy()
        for each in lower:
            trial.remove(each)
        if not trial.has_room(needs):
            return None
        others = {**self.nodes, node.name: trial} if self._has_rules else self.nodes
        if not fits(needs, trial, others):
            return None
        # Those of the highest priority may stay first, then those that have run longest (MoreImportantPod).
        victims = []
        for each in sorted(lower, key=lambda pod: (-pod.needs.priority, pod.since)):
            trial.add(each)
            if not fits(needs, trial, others):
                trial.remove(each)
                victims.append(each)
        return victims or None

    def _start(self, waits: WaitingJob) -> None:
        ended = {each for name in self._places.get(waits.job, ()) for each in self._ended_on.get(name, ())}
        # An end on another node may lift a rule about other pods.
        ended |= self._ended_now
        after = tuple(sorted(ended, key=lambda each: (each.end_at, each.job)))
        self.starts[waits.job] = Start(self._now, after, tuple(self._evicted.get(waits.job, ())))
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
    total = 0.0
    for name, least in _LEAST.items():
        used = sum(each.needs.amounts.get(name, least) for each in node.pods) + needs.amounts.get(name, least)
        whole = node.allocatable.get(name, 0)
        total += max(0.0, (whole - used) / whole) if whole else 0.0
    return total
