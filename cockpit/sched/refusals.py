"""Why what failed in a pass failed. The pass notes a verdict on each shape; what stops a job is derived from that, and
from what is in use after the pass, when somebody asks: most passes of a replay nobody asks about."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from cockpit.model.job import Job
from cockpit.model.reasons import Limit, NotEnoughFree, Reason
from cockpit.sched.clearing import Clearing
from cockpit.sched.feasible import infeasible
from cockpit.sched.gates import Gates
from cockpit.sched.index import Index
from cockpit.sched.request import Request
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Shortages


class Refusals:
    """As things stand after the last start of the pass."""

    def __init__(
        self,
        gates: Gates,
        bars: Bars,
        failed: Mapping[Shape, Reason | None],
        narrowed: Mapping[Request, Shape],
        exceeded: Mapping[Request, Limit],
        index: Index,
        clearing: Clearing | None = None,
    ) -> None:
        """`failed`: None stands for no room. `narrowed`: of requests that a limit left some alternatives of.
        `exceeded`: what a request would have broken by what there was room for. `clearing`: who gives way for whom."""
        self.gates = gates
        self.index = index
        """With the starts of the pass."""
        self._bars = bars
        self._failed, self._narrowed, self._exceeded = failed, narrowed, exceeded
        self.promised = clearing.promised if clearing is not None else {}
        """Who waits only for others to be gone, and for whom."""
        """Who has room as soon as others are gone."""
        self._vain = clearing.vain if clearing is not None else {}
        self._floor = index.floor
        self._shortages = Shortages(index)
        self._of_shapes: dict[Shape, Reason] = {}
        self._of_requests: dict[Request, Reason | None] = {}

    def __len__(self) -> int:
        """How many distinct shapes failed."""
        return len(self._failed)

    def __eq__(self, other: object) -> bool:
        """Whether every job is certainly told the same: two passes may also differ in shapes that no job gets to."""
        if not isinstance(other, Refusals) or self._failed.keys() != other._failed.keys():
            return False
        if (self._exceeded, self.promised, self._vain) != (other._exceeded, other.promised, other._vain):
            return False
        if not self.gates.as_of(other.gates):
            return False
        return self._described() == other._described()

    __hash__ = None  # type: ignore[assignment] # it is compared, never a key

    def reason(self, job: Job, partition: str) -> Reason | None:
        """The first rule that stops the job in that partition; None where no pass has looked at such a job yet."""
        if (promised := self.promised.get(job.id)) is not None:
            return promised
        request = self.gates.request(job, partition)
        told = self.gates.own(job) or self._of(request, job)
        if request in self._vain and isinstance(told, NotEnoughFree):
            return replace(told, preemptable=self._vain[request])
        return told

    def describe(self) -> None:
        """Now what would be derived later: where the asker has no time to wait for it."""
        self._described()

    def _of(self, request: Request, job: Job) -> Reason | None:
        if request not in self._of_requests:
            self._of_requests[request] = self.gates.shared(request) or self._exceeded.get(request)
        shape = self._narrowed.get(request, request.shape)
        return self._of_requests[request] or self._of_room(shape, self._bars.against_job(job))

    def _of_room(self, shape: Shape, barred: tuple[str, ...]) -> Reason | None:
        """That of the shape, else of one that runs into fewer reservations: what fails there fails here."""
        for count in range(len(barred), -1, -1):
            tried = replace(shape, barred=barred[:count]) if count else shape
            if tried in self._failed:
                return self._of_shape(tried)
        return None

    def _of_shape(self, shape: Shape) -> Reason:
        known = self._failed[shape] or self._of_shapes.get(shape)
        if known is None:
            known = self._of_shapes[shape] = infeasible(shape, self._floor) or self._shortages.reason(shape)
        return known

    def _described(self) -> dict[Shape, Reason]:
        return {shape: self._of_shape(shape) for shape in self._failed}
