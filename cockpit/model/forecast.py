"""When a job would start: what the scheduler's own plan says of the future, and what would change it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Explanation
from cockpit.model.spec import JobSpec


class Awaited(msgspec.Struct, frozen=True):
    """A job whose end the forecast counts on."""

    job: JobId
    """0: one that the asker may not see."""
    end_at: Millis
    """When it is taken to end."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """One job's start, as far as it can be told from what is known now."""

    now: bool = False
    """It starts with the next look at the queue."""
    likely_at: Millis | None = None
    """If jobs run as long as their users' jobs usually do. None: it starts only when something else happens, or lies
    beyond what is planned."""
    latest_at: Millis | None = None
    """No later than this, if jobs run about as long as their users' longest and as many come as in the last day: a
    bound that holds for about 95 of 100 jobs, not a promise. None: not asked for, or beyond what is planned."""
    after: tuple[Awaited, ...] = ()
    """The ends that make its room, of those on its nodes the last ones before it starts, soonest first."""


class Change(StrEnum):
    """What a what-if changes."""

    CARDS = "cards"
    NODES = "nodes"
    PARTITION = "partition"
    SPEC = "spec"
    POOL = "pool"
    LIMIT = "limit"
    PRIORITY = "priority"
    CPUS = "cpus"
    """On each node, as memory, cards and a share of one."""
    MEMORY = "memory"
    SHARE = "share"
    """In thousandths of a card."""
    BEGIN = "begin"
    """Without a moment to begin at; it is given in milliseconds."""
    EXCLUSIVE = "exclusive"
    """Beside other jobs."""


class WhatIf(msgspec.Struct, frozen=True):
    """The job asking for something else, and when it would start then."""

    change: Change
    before: str
    """What it asks for, as data: a number, a name, seconds, or the numbers of alternatives."""
    after: str
    spec: JobSpec
    """What to edit the job to."""
    forecast: Forecast
    named: bool = False
    """It keeps the very bound that the reason names, and is told whenever it starts."""


class Expected(msgspec.Struct, frozen=True):
    """When a queued job likely starts, and no word on why."""

    job: JobId
    at: Millis | None
    """None: only where there is a failure."""
    failure: str = ""
    """The exception that a defect raised while the job was foretold; empty: none."""


class Holding(msgspec.Struct, frozen=True):
    """A job that an outlook names: what it holds, or asks for while it waits."""

    job: JobId
    name: str
    user: str
    running: bool
    nodes: int
    cpus: int
    """Over all nodes, as memory and cards."""
    memory_mib: int
    card_milli: int


class Condition(msgspec.Struct, frozen=True):
    """The job that a dependency is on, as it is now."""

    job: JobId
    name: str
    state: JobState
    ends_by: Millis | None = None
    """While it runs: when its time is over."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "why not, when, and what if": for a queued job, or for a spec that nobody has submitted."""

    job: JobId
    """0: not submitted."""
    name: str
    position: int
    """Behind so many less one that are considered."""
    explanation: Explanation | None
    """None: it starts now."""
    forecast: Forecast
    what_ifs: tuple[WhatIf, ...] = ()
    """Those by which it starts sooner, and those within the bounds that its reason names; the soonest first."""
    named: tuple[Holding, ...] = ()
    """The jobs ahead, the ends awaited and the holders, those that the asker may see."""
    holders: tuple[JobId, ...] = ()
    """Where a limit stands in the way: who has what it gives, the largest first, at most ten."""
    holders_in_all: int = 0
    """Those that the asker may not see included."""
    unavailable: tuple[tuple[NodeName, str], ...] = ()
    """Where nodes that are out of service stand in the way: which, and why each of them is."""
    condition: Condition | None = None
    """Where a dependency stands in the way: what is known of that job."""
    told_at: Millis | None = None
    """When the cluster's own scheduler, if it is not this one, expects the start."""
    told_by: str = ""
    """Whose that scheduler is: `Slurm`; empty: cockpit's own, and the forecast is all there is."""
    failure: str = ""
    """The exception that a defect raised while the job was judged, for which some of the answer is missing; empty:
    none."""

    @property
    def place(self) -> int | None:
        """In the queue, from 1; None: it is held back."""
        return self.position if self.explanation is None else self.explanation.place

    def holding(self, job: JobId) -> Holding | None:
        """What a named job holds; None where the asker may not see it."""
        return next((each for each in self.named if each.job == job), None)
