"""Predicted starts of jobs: what the scheduler's plan says about the future, and which changes would start a job
sooner."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.fleetoutlook import MemberOutlook
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.reasons import Explanation
from cockpit.model.spec import JobSpec


class AwaitedJob(msgspec.Struct, frozen=True):
    """A job whose end the forecast counts on."""

    job: JobId
    """0: one that the user may not see."""
    end_at: Millis
    """When the job is expected to end."""


class NoBound(StrEnum):
    """Why the policy promises no latest start."""

    PRIORITIES_CHANGE = "priorities_change"
    """Age and fair share change the order of the queue while jobs wait."""
    LATER_SUBMISSIONS = "later_submissions"
    """Jobs that are submitted later may come ahead of it."""
    PREEMPTION = "preemption"
    """Other jobs may take the resources that it waits for."""
    BORROWED_QUOTA = "borrowed_quota"
    """It needs quota of other queues of its cohort, which these use first."""
    OTHER_CLUSTERS = "other_clusters"
    """The members of a fleet have queues of their own, which the fleet does not see."""
    CONDITION_AHEAD = "condition_ahead"
    """A job ahead of it is being requeued, or waits for another job, a begin time, a limit or a start beyond the
    scheduler's window, and comes first once that is over."""
    SHARED_LIMIT = "shared_limit"
    """Jobs ahead of it may use up a limit or an array's bound that it shares with them, or its budget."""
    ROUNDED = "rounded"
    """The scheduler's plan has only whole multiples of its resolution; a job ahead may start in between, on other nodes
    than planned."""
    NO_RESERVATION = "no_reservation"
    """The scheduler reserves nothing for it yet."""
    NOTHING_RESERVED = "nothing_reserved"
    """The cluster's scheduler reserves nothing for any job: what fits first is placed (kube-scheduler)."""
    ADMISSION_CHECKS = "admission_checks"
    """Once it has its quota, checks of other controllers come before its start."""
    NODES_UNSEEN = "nodes_unseen"
    """The user may see no nodes, so that only its quota is known, and not whether there are nodes for it."""
    NO_TIME_LIMIT = "no_time_limit"
    """Jobs of which no end is known have what it waits for, so that no start is known either."""


class CameAhead(msgspec.Struct, frozen=True, tag="came_ahead"):
    """A job is ahead of it now that was not before: submitted, released, requeued or given a higher priority; or a job
    that came since, or for which nothing was reserved before, starts before it in a gap of the plan."""

    job: JobId
    """0, here and in the causes below: a job that the user may not see."""


class LimitFreed(msgspec.Struct, frozen=True, tag="limit_freed"):
    """A rule no longer stops a job ahead of it: a limit has room again, or its condition came true."""

    job: JobId


class SharesLimit(msgspec.Struct, frozen=True, tag="shares_limit"):
    """A job that started since uses up a limit that it, or a job ahead of it, shares."""

    job: JobId


class RanLonger(msgspec.Struct, frozen=True, tag="ran_longer"):
    """A running job, or a held container, keeps its resources for longer than the plan assumed."""

    job: JobId
    until: Millis | None = None
    """The new latest end; None: unknown."""


class MovedUp(msgspec.Struct, frozen=True, tag="moved_up"):
    """A job ahead of it started earlier than planned, or is planned for an earlier moment, on the same resources."""

    job: JobId


class NodeLost(msgspec.Struct, frozen=True, tag="node_lost"):
    """A node went out of service."""

    node: NodeName


class NodesTaken(msgspec.Struct, frozen=True, tag="nodes_taken"):
    """An advance reservation was made."""

    reservation: str


class EndedEarly(msgspec.Struct, frozen=True, tag="ended_early"):
    """A running job gave its resources back earlier than the plan assumed, or will: it is being ended, or its time
    limit was shortened."""

    job: JobId


class LeftQueue(msgspec.Struct, frozen=True, tag="left_queue"):
    """A job that was ahead of it no longer is: cancelled, put on hold, or given a lower priority."""

    job: JobId


class NodeReturned(msgspec.Struct, frozen=True, tag="node_returned"):
    """A node came into service."""

    node: NodeName


class Edited(msgspec.Struct, frozen=True, tag="edited"):
    """The job itself was changed."""


class OtherEdited(msgspec.Struct, frozen=True, tag="other_edited"):
    """A job that was in the queue with it was changed, for example its time limit."""

    job: JobId


class RulesChanged(msgspec.Struct, frozen=True, tag="rules_changed"):
    """An administrator changed the cluster's rules, accounts or reservations."""


class EngineRestarted(msgspec.Struct, frozen=True, tag="engine_restarted"):
    """The engine did not run when the bound moved, so what moved it is not known."""


class Replanned(msgspec.Struct, frozen=True, tag="replanned"):
    """The scheduler planned the queue again, and none of the other causes applies."""


MoveCause = (
    CameAhead
    | LimitFreed
    | SharesLimit
    | RanLonger
    | MovedUp
    | NodeLost
    | NodesTaken
    | EndedEarly
    | LeftQueue
    | NodeReturned
    | Edited
    | OtherEdited
    | RulesChanged
    | EngineRestarted
    | Replanned
)


class StartMove(msgspec.Struct, frozen=True):
    """One change of a job's predicted start: of its latest one, or of the likely one."""

    at: Millis
    """When the engine noticed the move."""
    before: Millis
    after: Millis | None
    """The new start; None: no latest start is promised any more."""
    causes: tuple[MoveCause, ...]
    """The causes of the move; there is at least one."""


class PromisedStart(msgspec.Struct, frozen=True):
    """The latest start that a user was shown for a queued job: its present value and its moves."""

    job: JobId
    latest_at: Millis | None
    """The latest start; None: the promise was withdrawn."""
    moves: tuple[StartMove, ...] = ()
    """The last changes, oldest first."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The predicted start of one job, as far as it follows from what is known now."""

    now: bool = False
    """Whether the job starts in the next scheduling pass."""
    likely_at: Millis | None = None
    """The likely start if jobs run as long as their users' jobs usually do. None: it starts only after some other
    event, or beyond the planning window."""
    latest_at: Millis | None = None
    """The latest start that the scheduling policy promises, planned from time limits. None: it promises none, for the
    reason in `no_bound`."""
    after: tuple[AwaitedJob, ...] = ()
    """The ends that make its room, of those on its nodes the last ones before it starts, soonest first."""
    likely_from: Millis | None = None
    """The range of likely starts, which holds for about four of five jobs: its beginning. None: not computed, or
    `likely_at` is None."""
    likely_to: Millis | None = None
    """The end of that range."""
    no_bound: NoBound | None = None
    """Why there is no `latest_at`. None: there is one, or nothing is known of the start."""
    moves: tuple[StartMove, ...] = ()
    """The last changes of `latest_at`, oldest first."""
    likely_moves: tuple[StartMove, ...] = ()
    """The last changes of `likely_at` that are worth telling, oldest first; only of a job without `latest_at`."""


class Change(StrEnum):
    """The field that a what-if changes."""

    CARDS = "cards"
    NODES = "nodes"
    PARTITION = "partition"
    SPEC = "spec"
    POOL = "pool"
    LIMIT = "limit"
    PRIORITY = "priority"
    CPUS = "cpus"
    """CPUs per node; memory, cards and the share of a card likewise count per node."""
    MEMORY = "memory"
    SHARE = "share"
    """A share in thousandths of a card."""
    BEGIN = "begin"
    """Without a begin time; `before` is in milliseconds."""
    EXCLUSIVE = "exclusive"
    """On nodes that are shared with other jobs."""
    TOLERATION = "toleration"
    """Tolerating a taint; `after` is the taint. This one and those below are of jobs on Kubernetes."""
    LABEL = "label"
    """Another value of a label of the node selector, or without the label; `before` is the label, as `zone=z1`."""
    NODE_AFFINITY = "node_affinity"
    """Without node affinity."""
    POD_RULES = "pod_rules"
    """Without rules about other pods: affinity, anti-affinity and topology spread."""
    HOST_PORT = "host_port"
    """Without a port of the node; `before` is the port."""
    PRIORITY_CLASS = "priority_class"
    """A higher priority class; both values are names of classes."""
    QUEUE = "queue"
    """Another queue, by name."""


class WhatIf(msgspec.Struct, frozen=True):
    """The job asking for something else, and when it would start then."""

    change: Change
    before: str
    """The value in the job now, as data: a number, a name, seconds, or the numbers of alternatives."""
    after: str
    spec: JobSpec
    """The spec that the job would be edited to."""
    forecast: Forecast
    named: bool = False
    """Whether the what-if meets the very bound that the reason names; it is shown whatever start it leads to."""
    evicts: int = 0
    """The likely number of pods that are evicted for it."""


class ExpectedStart(msgspec.Struct, frozen=True):
    """The likely start of a queued job, without an explanation."""

    job: JobId
    at: Millis | None
    """The likely start; None only where there is a failure."""
    whole: Forecast | None = None
    """The forecast that `at` is taken from, without the ends that it awaits. None: `at` is all that is known."""
    failure: str = ""
    """The exception that a defect raised while the start was predicted; empty: none."""

    @property
    def forecast(self) -> Forecast:
        """The forecast, whole or not."""
        return self.whole if self.whole is not None else Forecast(likely_at=self.at)


class HoldingJob(msgspec.Struct, frozen=True):
    """A job that an outlook names: what it holds, or asks for while it waits."""

    job: JobId
    name: str
    user: str
    running: bool
    nodes: int
    cpus: int
    """The sum over all nodes; memory and cards are such sums, too."""
    memory_mib: int
    card_milli: int
    component: tuple[int, int] | None = None
    """The component of a heterogeneous job; see `JobRow.component`."""
    shown_id: str = ""
    """The id as users write it, `4700_3` for a task of an array; empty: what `job_words` makes of `job`."""


class Condition(msgspec.Struct, frozen=True):
    """The job that a dependency is on, as it is now."""

    job: JobId
    name: str
    state: JobState
    ends_by: Millis | None = None
    """While it runs: when its time is over."""
    shown_id: str = ""
    """The id to show; see `HoldingJob.shown_id`."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "why does it not start, when will it, and what would help": for a queued job or a spec that is not
    submitted."""

    job: JobId
    """0: not submitted."""
    name: str
    component: tuple[int, int] | None = None
    """The component of a heterogeneous job; see `JobRow.component`."""
    shown_id: str = ""
    """The id to show; see `HoldingJob.shown_id`."""
    position: int
    """The position in the queue among the jobs that the scheduler considers, from 1."""
    explanation: Explanation | None
    """Why the job waits; None: it starts now."""
    forecast: Forecast
    what_ifs: tuple[WhatIf, ...] = ()
    """The changes with which the job starts sooner, and those within the bounds that its reason names; the soonest
    start first."""
    members: tuple[MemberOutlook, ...] = ()
    """On a fleet: what each member cluster has for the job, and when it would start on that member alone."""
    named: tuple[HoldingJob, ...] = ()
    """The jobs ahead, the ends awaited and the holders, those that the user may see."""
    holders: tuple[JobId, ...] = ()
    """If a limit stops the job: the jobs that use the limit, the largest first, at most ten."""
    # That there are more holders is no secret; who they are may be.
    holders_in_all: int = 0
    """The number of all such jobs, including those that the user may not see."""
    unavailable: tuple[tuple[NodeName, str], ...] = ()
    """If nodes out of service stop the job: these nodes, each with its reason."""
    condition: Condition | None = None
    """If a dependency stops the job: what is known of the other job."""
    scheduler_start_at: Millis | None = msgspec.field(default=None, name="told_at")
    """The start that the cluster's own scheduler expects, if it is not cockpit's; unknown for a job that is not
    submitted."""
    scheduler: str = msgspec.field(default="", name="told_by")
    """The name of that scheduler, `Slurm`; empty: it is cockpit's own, and the forecast is complete."""
    failure: str = ""
    """The exception that a defect raised while the job was judged, for which some of the answer is missing; empty:
    none."""

    @property
    def place(self) -> int | None:
        """Return the position in the queue, from 1; None: the job is held."""
        return self.position if self.explanation is None else self.explanation.place

    def holding(self, job: JobId) -> HoldingJob | None:
        """Return what a named job holds; None where the user may not see the job."""
        return next((each for each in self.named if each.job == job), None)
