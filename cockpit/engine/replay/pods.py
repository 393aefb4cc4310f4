"""Pods that come to a cluster one after the other and stay: how much of its cards is allocated as more and more come.

Each pod is a submission to the machine, and `sched.cycle` decides where it is placed. A pod that does not fit leaves at
once, as in the published experiments: no waiting pod delays those after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine import decide
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import JobState, Submitter
from cockpit.sched.cycle import cycle
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.placement import fits_now
from cockpit.sched.shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec
    from cockpit.sched.policy import Policy

_SUBMITTER = Submitter(UserName("trace"), 0, 0, (), "/")
_AT = Millis(0)


class ArrivalSums(msgspec.Struct, frozen=True):
    """The sums after one more pod has arrived, in thousandths of cards."""

    asked_milli: int
    allocated_milli: int
    placed: int
    """The number of pods that were placed."""


class PodReplay:
    """The replay of pods on one cluster. `machine` holds the pods that fit."""

    def __init__(self, nodes: Sequence[Node], policy: Policy) -> None:
        self.machine = Machine(ClusterState())
        self._policy = policy
        self._index: Index | None = None
        self._apply(events.NodesChanged(tuple(nodes)))

    def arrivals(self, pods: Iterable[JobSpec]) -> Iterator[ArrivalSums]:
        """Place the pods one by one, and yield the sums after each."""
        requested = allocated = placed = 0
        for number, pod in enumerate(pods, self.machine.state.last_job_id + 1):
            milli = pod.specs[0].card_milli * pod.nodes
            requested += milli
            if self._starts(JobId(number), pod):
                allocated += milli
                placed += 1
            yield ArrivalSums(requested, allocated, placed)

    def _starts(self, job: JobId, pod: JobSpec) -> bool:
        """Submit the pod and let the cycle place it; a pod that does not fit leaves. Returns whether it was placed."""
        self._apply(events.JobSubmitted(job, pod, _SUBMITTER, _SUBMITTER.name))
        snapshot = self.machine.snapshot(_AT)
        self._index = refresh_index(self._index, snapshot)
        placed: list[events.EventBody] = []
        # Else the cycle has nothing to decide: this pod is the whole queue.
        if fits_now(self._index, shape_of(pod)):
            placed = decide.carry_out_plan(self.machine, cycle(snapshot, self._index, self._policy))
        # Archived at once, so that the state holds only the pods that were placed.
        self._apply(*placed or (events.JobEnded(job, JobState.STOPPED, EndCause.STOP), events.JobArchived(job)))
        return bool(placed)

    def _apply(self, *bodies: events.EventBody) -> None:
        for body in bodies:
            seq = self.machine.state.seq + 1
            self.machine.follow(events.EventRecord(seq=seq, at=_AT, actor="replay", origin="replay", body=body))


class Curve:
    """Allocation by what has arrived, both in percent of all cards: point k is the mean over the arrivals after which
    k % has arrived, rounded; where there were none, what held before (as published for FGD)."""

    def __init__(self, card_milli: int) -> None:
        self._card_milli = card_milli
        self._sums: dict[int, tuple[int, int]] = {}

    def add(self, arrived: ArrivalSums) -> None:
        percent = round(100 * arrived.asked_milli / self._card_milli)
        total, count = self._sums.get(percent, (0, 0))
        self._sums[percent] = total + arrived.allocated_milli, count + 1

    def points(self) -> list[float]:
        """Return the points of the curve in percent, the first one that for 0 %."""
        points: list[float] = []
        # Where the step of a large pod left out a percentage, the curve stays at the point before it.
        for percent in range(max(self._sums, default=-1) + 1):
            before = points[-1] if points else 0.0
            total, count = self._sums.get(percent, (0, 0))
            points.append(100 * total / count / self._card_milli if count else before)
        return points
