"""What elastic jobs may and must do, as a plain model of the requirements EL-01, EL-02, EL-04, EL-05 and EL-07: it
shares no code with the engine. The scheduler chooses places; the model only says which choices are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

QUEUED, SUSPENDED, RUNNING, SUCCEEDED, ERROR, STOPPED = (
    "queued",
    "suspended",
    "running",
    "succeeded",
    "error",
    "stopped",
)
LIVE = {QUEUED, SUSPENDED, RUNNING}
GOES_ON = {"", "reclaimed", "silent"}
"""Why a job is being ended that continues later."""
RECLAIM_SECONDS = 300
"""The grace period of a worker whose node becomes too dear or is taken back, where neither says another one (EL-02)."""


@dataclass
class Policy:
    """What the job's file says."""

    least: int
    wanted: int
    most: int
    grows: bool
    grace: int | None
    """Of a recalled worker, in seconds; None: that of the reclaim."""
    max_wait: int
    fails_after_wait: bool
    worker_policy: str
    job_policy: str
    limit: int
    most_price: int | None
    """The highest price, in thousandths, at which it starts and grows; None: any."""
    leaves_dear_nodes: bool

    def restarts(self, code: int) -> bool:
        """Whether a worker that ended with this exit code is replaced (EL-07)."""
        if self.worker_policy == "ExitCode":
            return code >= 128
        return self.worker_policy == "Always" or (self.worker_policy == "OnFailure" and code != 0)


@dataclass
class Worker:
    node: str
    started: bool = False
    code: int | None = None
    """Its exit code; None: it has not ended."""
    kill_at: int | None = None
    """The end of the grace period of a recalled worker; None: it was not recalled."""

    @property
    def stays(self) -> bool:
        return self.code is None and self.kill_at is None


@dataclass
class ModelJob:
    policy: Policy
    state: str = QUEUED
    workers: dict[int, Worker] = field(default_factory=dict)
    ranks_used: int = 0
    retries: int = 0
    blocked: set[str] = field(default_factory=set)
    ending: str = ""
    """Why the whole job is being ended: `reclaimed`, `silent`, `failed` or `stopped`; empty: it is not."""
    kill_at: int = 0
    changed_at: int = 0
    """When its workers changed last."""
    waits_since: int = 0
    """Since when it is suspended."""

    # what the scheduler does

    def placed(self, places: dict[int, str], now: int) -> None:
        self.state, self.ending, self.blocked = RUNNING, "", set()
        self.workers = {rank: Worker(node) for rank, node in places.items()}
        self.ranks_used, self.changed_at = len(places), now

    def grown(self, places: dict[int, str], now: int) -> None:
        self.workers |= {rank: Worker(node) for rank, node in places.items()}
        self.ranks_used += len(places)
        self.changed_at = now

    @property
    def may_grow(self) -> bool:
        """EL-01: a whole job grows where scaling is allowed, and does not while it shrinks."""
        whole = all(each.started and each.stays for each in self.workers.values())
        room = len(self.workers) < self.policy.most
        return self.state == RUNNING and not self.ending and whole and room and self.policy.grows

    @property
    def is_shrinking(self) -> bool:
        return any(each.kill_at is not None for each in self.workers.values())

    def admits(self, node: str, price: int) -> bool:
        """Whether a worker may come to this node."""
        return node not in self.blocked and (self.policy.most_price is None or price <= self.policy.most_price)

    # what happens

    def start(self) -> None:
        for each in self.workers.values():
            each.started = True

    def staying(self, *, without: set[int] | None = None) -> list[int]:
        return [rank for rank, each in self.workers.items() if each.stays and rank not in (without or set())]

    def exits(self, rank: int, code: int, now: int) -> None:
        """A worker's command ends; 255 also stands for a lost container."""
        worker = self.workers[rank]
        worker.started, worker.code = True, code
        if worker.kill_at is not None:  # EL-02: an exit during a reclaim is none, whatever its code
            del self.workers[rank]
            self.changed_at = now
        elif not self.ending and self.policy.restarts(code) and self.retries < self.policy.limit:
            del self.workers[rank]
            self.workers[self.ranks_used] = Worker(worker.node)
            self.ranks_used += 1
            self.retries += 1
            self.changed_at = now
        elif code and not self.ending:
            self.ending = "failed"
        if all(each.code is not None for each in self.workers.values()):
            self._end(now)

    def lost(self, rank: int, now: int) -> None:
        """A worker's container is lost: it does not answer any more (EL-05), unless the policy replaces it."""
        replaced = self.policy.worker_policy != "Never" and self.retries < self.policy.limit
        if self.workers[rank].kill_at is not None or self.ending or replaced:
            self.exits(rank, 255, now)
        elif len(self.staying(without={rank})) >= self.policy.least:
            self._block(rank, now)
        else:
            self.exits(rank, 255, now)

    def silent(self, rank: int, now: int) -> None:
        """A worker has not answered for the longest wait (EL-05)."""
        if self.ending or not self.workers[rank].stays or now - self.changed_at < 1000 * self.policy.max_wait:
            return
        if len(self.staying(without={rank})) >= self.policy.least:
            self._block(rank, now)
        else:
            self.ending, self.kill_at = "silent", now

    def _block(self, rank: int, now: int) -> None:
        self.blocked.add(self.workers.pop(rank).node)
        self.changed_at = now

    def leaves(self, nodes: set[str], seconds: int | None, now: int) -> None:
        """Nodes are reclaimed (EL-02). Below the least number of workers, all get the notice (EL-04)."""
        there = {rank for rank in self.staying() if self.workers[rank].node in nodes}
        if self.ending or not there or self.state != RUNNING:
            return
        graces = [each for each in (seconds, self.policy.grace) if each is not None]
        kill_at = now + 1000 * min(graces, default=RECLAIM_SECONDS)
        if len(self.staying(without=there)) >= self.policy.least:
            for rank in there:
                self.workers[rank].kill_at = kill_at
        else:
            self.ending, self.kill_at = "reclaimed", kill_at

    def stop(self, now: int, grace: int) -> None:
        if self.state in {QUEUED, SUSPENDED}:
            self.state = STOPPED
        else:
            self.ending, self.kill_at = "stopped", now + 1000 * grace

    def passes(self, now: int) -> None:
        """EL-04: the wait of a suspended job is bounded."""
        if self.state == SUSPENDED and now >= self.waits_since + 1000 * self.policy.max_wait:
            self.state = ERROR if self.policy.fails_after_wait else QUEUED

    def _end(self, now: int) -> None:
        failed = self.ending == "failed" or any(each.code for each in self.workers.values())
        if self.ending in {"reclaimed", "silent"}:
            self.state, self.waits_since = SUSPENDED, now
        elif self.ending == "stopped":
            self.state = STOPPED
        elif not failed:
            self.state = SUCCEEDED
        elif self.policy.job_policy == "OnFailure" and self.retries < self.policy.limit:
            self.state, self.retries = QUEUED, self.retries + 1
        else:
            self.state = ERROR
        self.workers, self.ending = {}, ""
