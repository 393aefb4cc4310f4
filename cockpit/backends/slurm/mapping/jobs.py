"""Reads one record of squeue: a job, or all pending tasks of an array, which Slurm stores as one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import jobparts, states, values
from cockpit.backends.slurm.mapping.holding import held
from cockpit.backends.slurm.mapping.jobparts import Fields, conditions
from cockpit.backends.slurm.mapping.values import hosts, job_id, numbers
from cockpit.model.attempt import Suspension
from cockpit.model.ids import JobId, Millis, index_ranges, rest_id, task_of
from cockpit.model.job import ENDED, ArrayTask, Job, JobState


class Listed:
    """A job in squeue's list. The model's job is made only when it is needed, since a list needs little of it.

    Of tasks that wait together `job` is the first, under the id of all of them.
    """

    def __init__(self, fields: Fields, zone: tzinfo | None = None, shards_per_card: int = 0) -> None:
        """`zone`: the cluster's time zone; None: this machine's. `shards_per_card`: shards per card (gres/shard)."""
        self.fields, self.shards = fields, shards_per_card
        self._zone = zone
        self.code = fields.get("Reason", "")
        """Slurm's reason why it waits."""
        self.state = states.word(fields["State"])
        """Slurm's state."""
        self.nodes = hosts(values.text(fields.get("NodeList", "")))
        self.kind = states.job_state(self.state, placed=bool(self.nodes))
        # Before `id`, which depends on both.
        self.array, self.tasks = _array(fields.get("ArrayJobID", ""), fields.get("ArrayTaskID", ""))
        self.id = _id(fields["JobID"], self.array, self.tasks)

    def at(self, name: str) -> Millis | None:
        """Return a time of the record, by its field."""
        return values.moment(self.fields.get(name, ""), self._zone)

    @property
    def waits(self) -> bool:
        return self.kind is JobState.QUEUED

    @property
    def priority(self) -> int | None:
        return values.number(self.fields.get("PriorityLong", ""))

    @property
    def starts_at(self) -> Millis | None:
        """Start that Slurm expects for a pending job; else None."""
        # One field has two meanings in Slurm: the planned start while the job is pending, the real one afterwards.
        return self.at("StartTime") if self.waits else None

    @property
    def held_by(self) -> str:
        """Name of the user who holds the pending job; empty if it is not held."""
        return jobparts.holder(self.code, self.state, self.fields["UserName"]) if self.waits else ""

    @property
    def begin_at(self) -> Millis | None:
        return jobparts.begin_at(self.code, self.at("EligibleTime"), self.at("SubmitTime"))

    @property
    def component(self) -> tuple[int, int] | None:
        """Id of a heterogeneous job's first component, and the number of this component; None for other jobs."""
        leader, offset = (values.number(self.fields.get(name, "")) for name in ("HetJobID", "HetJobOffset"))
        return (leader, offset or 0) if leader else None

    @cached_property
    def job(self) -> Job:
        return held(_job(self), values.text(self.fields.get("Comment", "")))

    def task(self, index: int) -> Job:
        """Return the job of one of `tasks`."""
        assert self.array is not None
        own = replace(self.array, index=index)
        return replace(self.job, id=job_id(own.array, index), array=own)

    def each(self, most: int | None = None) -> Iterator[Job]:
        """Yield the job, or the tasks that the record describes, at most the given number of them."""
        if not self.tasks:
            yield self.job
        for index in islice(self.tasks, most):
            yield self.task(index)

    @property
    def words(self) -> str:
        """The pending tasks in the form that Slurm's commands take: `123_[4-90]`."""
        assert self.array is not None
        return f"{self.array.array}_[{index_ranges(self.tasks)}]"


def _id(number: str, array: ArrayTask | None, tasks: tuple[int, ...]) -> JobId:
    if array is None:
        return job_id(values.number(number) or 0)
    return rest_id(array.array) if tasks else job_id(array.array, array.index)


def _array(number: str, printed: str) -> tuple[ArrayTask | None, tuple[int, ...]]:
    """Return the task, and the indices of all tasks that the record describes if there are several: `4-90%5`."""
    array = values.number(number)
    # A job that is no task has its own number as ArrayJobID and `N/A` as ArrayTaskID (22.05).
    if not array or not printed[:1].isdigit():
        return None, ()
    indices, _, at_once = printed.partition("%")
    every = numbers(indices)
    # A record of several tasks describes all of them; its first and last index bound the range that is shown.
    task = ArrayTask(JobId(array), every[0], int(at_once) if at_once.isdigit() else 0, len(every), every[0], every[-1])
    return task, every if len(every) > 1 else ()


class LookedUpJob(NamedTuple):
    """A job that was looked up, in squeue's list or in accounting."""

    job: Job
    listed: Listed | None
    """The job's record from squeue; None: it is from accounting."""
    fields: Mapping[str, str] = {}
    """The job's record from accounting, if `listed` is None."""

    @property
    def number(self) -> int:
        """Slurm's own number of the job, which each task of an array has, too."""
        printed = self.listed.fields["JobID"] if self.listed is not None else self.fields.get("JobIDRaw", "")
        return values.number(printed) or self.job.id

    @property
    def leader(self) -> JobId | None:
        """The first component of a heterogeneous job of which this is another one."""
        if self.listed is not None:
            first, offset = self.listed.component or (None, None)
        else:
            number, _, position = self.fields.get("JobID", "").partition("+")
            first, offset = values.number(number), values.number(position)
        return job_id(first) if first and offset else None

    @property
    def alike(self) -> JobId:
        """Id of the first task in its record; for the scheduler all pending tasks of an array are equal."""
        if self.listed is None or not self.listed.tasks or self.listed.array is None:
            return self.job.id
        return job_id(self.listed.array.array, self.listed.array.index)


def find_job(listed: Iterable[Listed], wanted: JobId) -> LookedUpJob | None:
    """Return the job of this id, also one of an array's pending tasks; an array's own id means its first task."""
    number, index = task_of(wanted)
    first: Listed | None = None
    for each in listed:
        if each.id == wanted:
            return LookedUpJob(each.job, each)
        if each.array is not None and each.array.array == number:
            if index in each.tasks:
                return LookedUpJob(each.task(index), each)
            first = first or each
    return LookedUpJob(first.job, first) if first is not None and index is None else None


def _job(listed: Listed) -> Job:
    """Return the job of a record of squeue."""
    fields, kind = listed.fields, listed.kind
    submitted = listed.at("SubmitTime") or Millis(0)
    # EndTime of a running job is the end of its time limit, so it counts only when the job has ended.
    started, ended = (listed.at("StartTime"), listed.at("EndTime")) if not listed.waits else (None, None)
    ended = ended if kind in ENDED else None
    # A pending job may name several partitions; when it starts Slurm keeps the one that it runs in.
    partitions = values.names(fields["Partition"])
    waiting = conditions(values.text(fields.get("Dependency", "")))
    spec = jobparts.spec(fields, listed.begin_at, listed.shards)
    attempt = None
    # A job that was cancelled while it waited has a StartTime, too, but no nodes.
    if listed.nodes and started is not None:
        attempt = jobparts.attempt(fields, spec, listed.nodes, (started, ended), partitions)
    return Job(
        id=listed.id,
        spec=spec,
        submitter=jobparts.submitter(fields),
        project=values.text(fields["Account"]),
        submitted_at=submitted,
        state=kind,
        state_since=ended or started or submitted,
        held_by=listed.held_by,
        # Slurm does not report since when, nor below who suspended it.
        held_since=submitted,
        attempt=attempt,
        exit=states.exit_of(listed.state, fields.get("exit_code", "")) if kind in ENDED else None,
        end_cause=states.end_cause(listed.state),
        ended_at=ended,
        account=values.text(fields["Account"]),
        qos=values.text(fields["QOS"]),
        partitions=partitions,
        array=listed.array,
        # The failed one first: it decides, and the reason names the first of the list.
        waits_for=waiting.failed[:1] + waiting.open,
        never=waiting.failed[0].job if waiting.failed else None,
        accrues_from=listed.at("AccrueTime"),
        suspension=Suspension(by="") if kind is JobState.SUSPENDED else None,
    )
