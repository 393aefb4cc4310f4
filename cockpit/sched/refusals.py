"""Why each request failed in a pass. Most passes of a replay nobody asks about, so a shortage of room is described only
when somebody does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.model.reasons import Reason
from cockpit.sched.index import Index
from cockpit.sched.request import Request
from cockpit.sched.shape import Shape
from cockpit.sched.shortage import Shortages


class Refusals(Mapping[Request, Reason]):
    """One reason per request that failed, as things stand after the last start of the pass."""

    def __init__(
        self,
        requests: Sequence[Request],
        refused: Mapping[Request, Reason],
        failed: Mapping[Shape, Reason | None],
        shapes: Mapping[Request, Shape],
        index: Index,
    ) -> None:
        """`refused`: by a gate. `failed`: None stands for no room. `shapes`: of requests that were tried otherwise than
        they ask."""
        self._requests = requests
        self._refused, self._failed, self._shapes = refused, failed, shapes
        self._derived: dict[Shape, Reason] = {}
        self._shortages = Shortages(index)

    def __getitem__(self, request: Request) -> Reason:
        shape = self._shapes.get(request, request.shape)
        known = self._refused.get(request) or self._failed[shape] or self._derived.get(shape)
        if known is None:
            known = self._derived[shape] = self._shortages.reason(shape)
        return known

    def __contains__(self, request: object) -> bool:
        return isinstance(request, Request) and (
            request in self._refused or self._shapes.get(request, request.shape) in self._failed
        )

    def __iter__(self) -> Iterator[Request]:
        return (request for request in dict.fromkeys(self._requests) if request in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def describe(self) -> None:
        """Now what would be derived later: where the asker has no time to wait for it."""
        for _ in self.values():
            pass
