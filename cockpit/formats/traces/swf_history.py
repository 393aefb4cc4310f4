"""Selects the jobs of a log in SWF that a replay runs, and converts them.

- Lines of status 2 to 4 are parts of a job that has a line of its own; a job of status 5 that never ran was cancelled
  while it waited: neither is replayed. So it is with what no scheduler could start: unknown run time or processors,
  more processors than there are.
- A job asks for the processors of field 8, else of field 5, and for the time of field 9, else for what it ran.
- A job is ended at the time it asked for, as batch systems do. One that ran for 0 s ends at the moment it starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache

import msgspec

from cockpit.engine.replay.jobs import Arrival
from cockpit.formats.traces.swf import Status, SwfJob
from cockpit.model.accounts import ROOT, Association
from cockpit.model.cluster import Cluster, Priority, PriorityKind, Weights
from cockpit.model.events import AccountsChanged, ClusterConfigured, JobSubmitted
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Node
from cockpit.model.spec import DAY_SECONDS, JobSpec, NodeSpec

MACHINE = NodeName("machine")
ACCOUNT = "users"
"""The account that every job is charged to."""
SAMPLE_PRIORITY = Priority(
    kind=PriorityKind.MULTIFACTOR,
    weights=Weights(age=1000, fairshare=10_000, job_size=1000),
    max_age_seconds=14 * DAY_SECONDS,
    decay_half_life_seconds=14 * DAY_SECONDS,
)
"""The sample configuration of Slurm's page on the multifactor plugin, as far as a log can fill it."""


class Skipped(StrEnum):
    """Why a line is not replayed, as a person reads it."""

    PART = "part of a job that has a line of its own"
    CANCELLED = "cancelled before its start"
    UNKNOWN = "unknown run time or processors"
    TOO_LARGE = "more processors than there are"


class History(msgspec.Struct, frozen=True):
    """A log as a replay takes it."""

    jobs: list[SwfJob]
    """The replayed jobs; the engine's ids count them from 1."""
    arrivals: list[Arrival]
    skipped: Counter[Skipped]


def history(jobs: Sequence[SwfJob], processors: int, *, perfect: bool = False) -> History:
    """The jobs, sorted by submission, as they come to a machine of so many processors. `perfect`: each asks for exactly
    the time it runs."""
    verdicts = [(job, _skipped(job, processors)) for job in jobs]
    replayed = [job for job, verdict in verdicts if verdict is None]
    return History(
        replayed,
        [_arrival(JobId(number), job, perfect=perfect) for number, job in enumerate(replayed, 1)],
        Counter(verdict for _, verdict in verdicts if verdict is not None),
    )


def machine(processors: int) -> Node:
    """The cluster of a log: one node that has all processors; of memory the logs say too little."""
    return Node(name=MACHINE, cpus=processors, memory_mib=0)


def multifactor(past: History) -> tuple[ClusterConfigured, AccountsChanged]:
    """The rules by which users (field 12) have equal shares of one account and jobs go by Slurm's priority."""
    users = dict.fromkeys(arrival.submitted.submitter.name for arrival in past.arrivals)
    members = (Association(account=ACCOUNT, user=user, default=True) for user in users)
    account = Association(account=ACCOUNT, parent=ROOT)
    return ClusterConfigured(Cluster(priority=SAMPLE_PRIORITY)), AccountsChanged((account, *members))


def _skipped(job: SwfJob, processors: int) -> Skipped | None:
    if job.status in (Status.PART, Status.LAST_PART, Status.LAST_PART_FAILED):
        return Skipped.PART
    if job.status == Status.CANCELLED and job.ran <= 0:
        return Skipped.CANCELLED
    if job.ran < 0 or job.asks <= 0:
        return Skipped.UNKNOWN
    return Skipped.TOO_LARGE if job.asks > processors else None


def _arrival(number: JobId, job: SwfJob, *, perfect: bool) -> Arrival:
    limit = job.ran if perfect or job.asked_seconds <= 0 else job.asked_seconds
    who = _submitter(job.user)
    submitted = JobSubmitted(number, _spec(job.asks, limit), who, who.name, ACCOUNT)
    return Arrival(Millis(job.submitted * 1000), submitted, min(job.ran, limit) * 1000)


@cache
def _spec(processors: int, limit: int) -> JobSpec:
    """Return one shared spec for equal requests, so that each is checked once."""
    return JobSpec(name="job", command="", output="", specs=_specs(processors), time_limit_seconds=limit)


@cache
def _specs(processors: int) -> tuple[NodeSpec, ...]:
    """Return one shared object, so that jobs which differ only in their limits are compared fast."""
    return (NodeSpec(cpus=processors, memory_mib=0),)


@cache
def _submitter(user: int) -> Submitter:
    return Submitter(UserName(f"user{user}"), max(user, 0), 0, (), "/")
