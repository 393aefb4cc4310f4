"""Logs of parallel machines in the Standard Workload Format: 18 numbers a line, `;` before a comment, -1 for unknown.

Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", 1999, as the Parallel Workloads
Archive keeps it (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).

What a replay makes of a log:
- Lines of status 2 to 4 are parts of a job that has a line of its own, and a job of status 5 that never ran was
  cancelled while it waited. Neither is replayed; nor is a job that no scheduler could start: unknown run time or
  processors, or more processors than there are.
- A job requests the processors of field 8, else of field 5, and the time of field 9, else its run time.
- A job ends at its time limit, as batch systems enforce it. A job that ran for 0 s ends at the moment it starts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, StrEnum
from functools import cache

import msgspec

from cockpit.engine.replay.jobs import Arrival
from cockpit.errors import SpecErrors
from cockpit.formats.packed import unpack
from cockpit.model.accounts import ROOT, Association
from cockpit.model.cluster import Cluster, Priority, PriorityKind, Weights
from cockpit.model.events import AccountsChanged, ClusterConfigured, JobSubmitted
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Node
from cockpit.model.spec import DAY_SECONDS, JobSpec, NodeSpec
from cockpit.model.text import whole

FIELDS = 18
UNKNOWN = -1
MOST = 1 << 50
"""The largest number that is read; as seconds, 35 million years. A replay counts milliseconds, and its sums stay within
64 bits."""

_MOST_ERRORS = 20
_SAID = re.compile(r"^;\s*(MaxProcs|MaxNodes):\s*([1-9][0-9]*)\s*$", re.MULTILINE)
_READ = (0, 1, 2, 3, 4, 7, 8, 10, 11, 14)
"""The fields that a replay needs, counted from 0; the others only have to exist."""


class Status(IntEnum):
    """Field 11."""

    FAILED = 0
    COMPLETED = 1
    PART = 2
    """The status of a line for one of several runs of a job, as are the next two."""
    LAST_PART = 3
    LAST_PART_FAILED = 4
    CANCELLED = 5


class SwfJob(msgspec.Struct, frozen=True):
    """One line of a log. Times in seconds; -1: unknown."""

    line: str
    """The line as it was read, to be written again."""
    number: int
    submitted: int
    waited: int
    ran: int
    processors: int
    """Allocated."""
    asked_processors: int
    asked_seconds: int
    status: int
    user: int
    queue: int

    @property
    def asks(self) -> int:
        """Return the number of processors that are requested, else that were used, as far as known."""
        return self.asked_processors if self.asked_processors > 0 else self.processors


def read_swf(source: str, data: bytes) -> list[SwfJob]:
    """Return the jobs of a log, plain or gzip, sorted by submission and number: the order in which they came.

    Raises `SpecErrors` that name the line and what to do.
    """
    text = unpack(source, data).decode("utf-8", "replace")
    errors: list[str] = []
    jobs = list(_jobs(source, text.splitlines(), errors))
    if errors:
        more = len(errors) - _MOST_ERRORS
        raise SpecErrors([*errors[:_MOST_ERRORS], f"{source}: … and {more} more"] if more > 0 else errors)
    if not jobs:
        raise SpecErrors([f"{source}: no job in it; a log in SWF has {FIELDS} numbers a line."])
    # The format asks for this order, but a log may not keep it; jobs of one second go by their number.
    jobs.sort(key=lambda job: (job.submitted, job.number))
    return jobs


def processors_said(source: str, data: bytes) -> int | None:
    """Return the machine's number of processors from the header; a header with nodes alone counts one each. None: it
    has neither."""
    header = dict(_SAID.findall(unpack(source, data).decode("utf-8", "replace")))
    count = header.get("MaxProcs", header.get("MaxNodes"))
    return whole(count) if count else None


def swf_lines(jobs: Iterable[SwfJob], runs: Iterable[tuple[int, int]], header: Sequence[str] = ()) -> Iterator[str]:
    """Return the log with the wait and run times of another schedule, in seconds. `header` precedes it as comments."""
    yield from (f"; {line}\n" for line in header)
    for job, (waited, ran) in zip(jobs, runs, strict=True):
        # From the line as read, so that the fields which a replay does not use stay as they are.
        fields = job.line.split()
        # Fields 3 and 4 of the format, which counts from 1.
        fields[2], fields[3] = str(waited), str(ran)
        yield " ".join(fields) + "\n"


def _jobs(source: str, lines: Iterable[str], errors: list[str]) -> Iterator[SwfJob]:
    """Yield the jobs of a log; wrong lines are added to `errors`."""
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith(";"):
            continue
        try:
            yield _job(fields, line)
        except ValueError as error:
            errors.append(f"{source}:{number}: {error}")


def _job(fields: list[str], line: str) -> SwfJob:
    """Return the job of a line. Raises ValueError."""
    if len(fields) != FIELDS:
        msg = f"{len(fields)} fields where SWF has {FIELDS}; correct the line, or put `;` before it."
        raise ValueError(msg)
    try:
        # The usual case first: logs have many thousands of lines, and few have fractions.
        values = [int(fields[index]) for index in _READ]
    except ValueError:
        values = [_number(fields[index], index) for index in _READ]
    if values[0] < 0 or values[1] < 0:
        msg = "a job needs a number (field 1) and a moment of submission (field 2), neither negative."
        raise ValueError(msg)
    if max(values) > MOST:
        index = next(index for index, value in zip(_READ, values, strict=True) if value > MOST)
        msg = f"field {index + 1} is {fields[index][:40]!r}, and may be {MOST} at most; -1 means unknown."
        raise ValueError(msg)
    return SwfJob(line, *values)


def _number(text: str, index: int) -> int:
    """Return a whole number; fractions of a second, which some logs have against the format, are cut off."""
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        msg = f"field {index + 1} is {text[:40]!r} where SWF has a number; -1 means unknown."
        raise ValueError(msg) from None


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
    """Return the jobs, sorted by submission, as they come to a machine of so many processors.

    `perfect`: each asks for exactly the time it runs.
    """
    verdicts = [(job, _reason_to_skip(job, processors)) for job in jobs]
    replayed = [job for job, verdict in verdicts if verdict is None]
    return History(
        replayed,
        [_arrival(JobId(number), job, perfect=perfect) for number, job in enumerate(replayed, 1)],
        Counter(verdict for _, verdict in verdicts if verdict is not None),
    )


def machine(processors: int) -> Node:
    """Return the cluster of a log: one node that has all processors; of memory the logs say too little."""
    # One node, since a log does not say which processors a job had: no job can fail for want of adjacent ones.
    return Node(name=MACHINE, cpus=processors, memory_mib=0)


def multifactor(past: History) -> tuple[ClusterConfigured, AccountsChanged]:
    """Return rules by which users (field 12) have equal shares of one account and jobs go by Slurm's priority."""
    users = dict.fromkeys(arrival.submitted.submitter.name for arrival in past.arrivals)
    members = (Association(account=ACCOUNT, user=user, default=True) for user in users)
    account = Association(account=ACCOUNT, parent=ROOT)
    return ClusterConfigured(Cluster(priority=SAMPLE_PRIORITY)), AccountsChanged((account, *members))


def _reason_to_skip(job: SwfJob, processors: int) -> Skipped | None:
    """Return why a job is not replayed; None when it is."""
    if job.status in (Status.PART, Status.LAST_PART, Status.LAST_PART_FAILED):
        return Skipped.PART
    # A cancelled job that ran occupied its processors, so it is replayed.
    if job.status == Status.CANCELLED and job.ran <= 0:
        return Skipped.CANCELLED
    if job.ran < 0 or job.asks <= 0:
        return Skipped.UNKNOWN
    return Skipped.TOO_LARGE if job.asks > processors else None


def _arrival(number: JobId, job: SwfJob, *, perfect: bool) -> Arrival:
    # A log without requested times (field 9) gives the scheduler perfect estimates: it says nothing better.
    limit = job.ran if perfect or job.asked_seconds <= 0 else job.asked_seconds
    who = _submitter(job.user)
    submitted = JobSubmitted(number, _spec(job.asks, limit), who, who.name, ACCOUNT)
    # Times in the log are seconds, those of the engine milliseconds.
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
