"""What distinguishes one queued job from another to a cycle: jobs of one request wait for one reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask, Job
from cockpit.model.reasons import NotEvaluated, Reason
from cockpit.sched.entries import Entry, partitions_of
from cockpit.sched.limits import NOBODY, Party
from cockpit.sched.reserved_nodes import Bars
from cockpit.sched.rulebook import Rulebook
from cockpit.sched.shape import Shape, shape_of

_UNJUDGED = NotEvaluated()
_NO_ARRAY = ArrayTask(JobId(0), 0)


class Request(msgspec.Struct, frozen=True, cache_hash=True):
    """A shape, and what the rules make of it for somebody. A condition that a job carries itself is no part of it."""

    shape: Shape
    party: Party = NOBODY
    array: JobId = JobId(0)
    """Whose tasks may not all run at once; 0: no bound."""
    at_once: int = 0
    seconds: int = 0
    """The time limit, where a limit counts it; else 0."""
    refused: Reason | None = None
    """What the rules alone say, whatever runs."""


class RequestBook:
    """Remembers the requests of every queued job: judging 100 000 jobs each cycle would cost more than the cycle.

    Only a memory: it changes no answer, so successive indexes share one while the rules stay what they are.
    """

    def __init__(self, rules: Rulebook) -> None:
        self.rules = rules
        self._known: dict[JobId, tuple[Job, dict[str, Request]]] = {}
        self._interned: dict[Request, Request] = {}
        self._refused: dict[object, Reason | None] = {}

    def of(self, job: Job, partition: str, bars: Bars) -> Request:
        """The job's request in one of its partitions."""
        known = self._known.get(job.id)
        found = known[1] if known is not None and known[0] is job else self._learn(job)
        return self._barred(job, found[partition], bars)

    def of_all(self, entries: Sequence[Entry], bars: Bars) -> list[Request]:
        """Requests in the order of the entries; forgets jobs that left the queue once they are the majority."""
        if len(self._known) > 2 * len(entries) + 1024:
            self._known.clear()
            self._interned.clear()
            self._refused.clear()
        get, learn = self._known.get, self._learn
        found = [
            (known[1] if (known := get(job.id)) is not None and known[0] is job else learn(job))[partition]
            for job, partition in entries
        ]
        if not bars.lasting:
            return found
        return [self._barred(job, request, bars) for (job, _), request in zip(entries, found, strict=True)]

    def _barred(self, job: Job, request: Request, bars: Bars) -> Request:
        barred = bars.against(job.spec.time_limit_seconds, job.spec.reservation)
        if not barred:
            return request
        shape = msgspec.structs.replace(request.shape, barred=barred)
        return self._intern(msgspec.structs.replace(request, shape=shape))

    def _learn(self, job: Job) -> dict[str, Request]:
        requests = {each: self._intern(self._request(job, each)) for each in partitions_of(job)}
        self._known[job.id] = (job, requests)
        return requests

    def _request(self, job: Job, partition: str) -> Request:
        shape = shape_of(job.spec, partition)
        refused = self._judged(job, shape)
        if refused is not None:
            return Request(shape, refused=refused)
        party = self.rules.party(job, partition)
        binding = party if party.running or party.budgets else NOBODY
        counts_time = self.rules.safe and bool(party.budgets)
        task = job.array if job.array is not None and job.array.at_once else _NO_ARRAY
        return Request(shape, binding, task.array, task.at_once, job.spec.time_limit_seconds if counts_time else 0)

    def _judged(self, job: Job, shape: Shape) -> Reason | None:
        alike = (shape, job.account, job.submitter.name, job.qos, job.spec.time_limit_seconds)
        refused = self._refused.get(alike, _UNJUDGED)
        if refused is _UNJUDGED:  # no second look-up: a large pass forgets in a thread of its own
            refused = self._refused[alike] = self.rules.refusal(job, shape.partition)
        return refused

    def _intern(self, request: Request) -> Request:
        return self._interned.setdefault(request, request)
