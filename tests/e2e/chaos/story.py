"""A job of a chaos run as its events tell it: every change of size or attempt has a cause, and no exit during a reclaim
uses up a retry. Recounted without the engine's own code; each method yields a sentence for each broken promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.model import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.model.events import EventRecord


class Story:
    """What has happened to one job so far. `least`, `most`: the bounds of its workers."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most
        self._attempt = 0
        self._present: set[int] = set()
        """Ranks of the workers."""
        self._ended: dict[int, events.ReplicaEnded] = {}
        self._recalled: set[int] = set()
        self._ending: events.EndingBegan | None = None
        self._retries = 0
        self.sizes: dict[tuple[int, int], int] = {}
        """Size of the ring by attempt and version."""

    def step(self, record: EventRecord) -> Iterator[str]:
        if (tell := _TELLERS.get(type(record.body))) is not None:
            yield from (f"event {record.seq}: {each}" for each in tell(self, record.body))
        self.sizes[self._attempt, record.seq] = len(self._present - self._recalled)

    def _placed(self, body: events.JobPlaced) -> Iterator[str]:
        if body.attempt != self._attempt + 1:
            yield f"attempt {body.attempt} follows attempt {self._attempt}"
        self._attempt, self._ending = body.attempt, None
        self._present = {part.rank for part in body.placement}
        self._ended, self._recalled = {}, set()
        yield from self._size()

    def _added(self, body: events.WorkersAdded) -> Iterator[str]:
        added = {part.rank for part in body.placement}
        if taken := self._present & added:
            yield f"ranks {sorted(taken)} are used twice"
        self._present |= added
        yield from self._size()

    def _were_recalled(self, body: events.WorkersRecalled) -> Iterator[str]:
        self._recalled |= set(body.ranks)
        yield from self._size()

    def _left(self, body: events.WorkersLeft) -> Iterator[str]:
        for rank in body.ranks:
            ended = self._ended.get(rank)
            if not (rank in self._recalled or body.because or ended is not None):
                yield f"worker {rank} left without a cause"
        self._present -= set(body.ranks)
        self._recalled -= set(body.ranks)
        yield from self._size()

    def _replaced(self, body: events.WorkerReplaced) -> Iterator[str]:
        if body.rank in self._recalled or self._ending is not None:
            yield f"worker {body.rank} was replaced although it was reclaimed"
        yield from self._retry(body.retry)
        self._present = self._present - {body.rank} | {body.by}

    def _replica_ended(self, body: events.ReplicaEnded) -> Iterator[str]:
        self._ended[body.rank] = body
        yield from ()

    def _ending_began(self, body: events.EndingBegan) -> Iterator[str]:
        self._ending = body
        yield from ()

    def _requeued(self, body: events.JobRequeued) -> Iterator[str]:
        planned = self._ending is not None and self._ending.requeue
        if body.retry:
            if planned:
                yield f"it was requeued by an eviction ({body.cause}), and used up a retry"
            yield from self._retry(body.retry)
        elif body.cause == "requeue":
            self._retries = 0
        elif not planned and body.cause != "start_failed":
            yield f"it was requeued without a cause ({body.cause})"
        self._present, self._recalled, self._ending = set(), set(), None

    def _job_ended(self, body: Any) -> Iterator[str]:
        self._present, self._recalled = set(), set()
        yield from ()

    def _retry(self, number: int) -> Iterator[str]:
        if number != self._retries + 1:
            yield f"retry {number} follows retry {self._retries}"
        self._retries = number

    def _size(self) -> Iterator[str]:
        size = len(self._present - self._recalled)
        if not self._least <= size <= self._most:
            yield f"it has {size} workers"


_TELLERS: dict[type, Callable[[Story, Any], Iterator[str]]] = {
    events.JobPlaced: Story._placed,
    events.WorkersAdded: Story._added,
    events.WorkersRecalled: Story._were_recalled,
    events.WorkersLeft: Story._left,
    events.WorkerReplaced: Story._replaced,
    events.ReplicaEnded: Story._replica_ended,
    events.EndingBegan: Story._ending_began,
    events.JobRequeued: Story._requeued,
    events.JobEnded: Story._job_ended,
}
