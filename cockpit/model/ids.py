"""Names of things. Job ids are increasing integers and are never used again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NewType

import msgspec

JobId = NewType("JobId", int)
NodeName = NewType("NodeName", str)
UserName = NewType("UserName", str)

Millis = NewType("Millis", int)
"""A moment: milliseconds since 1970-01-01 UTC. Fields of this type are named `*_at` or `*_until`."""


_FOREIGN = 1 << 52
_NUMBER_BITS = 26
_NUMBER = (1 << _NUMBER_BITS) - 1


def task_id(number: int, index: int) -> JobId:
    """The id of one task of an array on a cluster that names tasks by two numbers, of which those that wait have no
    other. They stand in the order of their arrays, then of their indices; no other id is as large, and none of them is
    too large for JSON's numbers.

    Slurm's own numbers have 26 bits (`MAX_JOB_ID` is 0x03ffffff).
    """
    return JobId(_FOREIGN | number << _NUMBER_BITS | index)


REST = _NUMBER
"""The index that stands for all tasks of an array that still wait and are alike. Slurm's own indices end far below."""


def rest_id(number: int) -> JobId:
    """The id of what is left of an array: Slurm keeps one record for it, and so does whoever lists it."""
    return task_id(number, REST)


_MEMBER_BIT = 53
_OWN = (1 << _MEMBER_BIT) - 1
_SENIORITY_BITS = _MEMBER_BIT + _NUMBER_BITS + 1


def member_id(member: int, job: int) -> JobId:
    """The id of a member's job where several clusters are shown as one; `member` counts from 1. Such ids stay inside
    one process: JSON's numbers have 53 bits."""
    return JobId(member << _MEMBER_BIT | job & _OWN)


def member_of(job: int) -> tuple[int, JobId]:
    """The member, 0 where there are none, and the id that it has there; the inverse of `member_id`."""
    return job >> _MEMBER_BIT, JobId(job & _OWN)


def task_of(job: int) -> tuple[int, int | None]:
    """The number of the job or array, and the task's index; the inverse of `task_id`, whichever cluster it is of."""
    job &= _OWN
    if not job & _FOREIGN:
        return job, None
    return (job ^ _FOREIGN) >> _NUMBER_BITS, job & _NUMBER


def seniority(job: int) -> int:
    """What jobs are put in order of submission by: a task stands where its array's number does, whichever kind of id it
    has, and the jobs of one member before those of the next. No two ids have the same."""
    number, index = task_of(job)
    place = 0 if index is None else index + 1
    return job >> _MEMBER_BIT << _SENIORITY_BITS | number << _NUMBER_BITS + 1 | place


def is_apart(job: int) -> bool:
    """Whether `seniority` may order ids otherwise than by their own size once this one is among them."""
    return job >= _FOREIGN


def job_words(job: int) -> str:
    """`123`, or `123_4` for a task; `123_[…]` for those that are left of an array."""
    number, index = task_of(job)
    if index is None:
        return str(number)
    return f"{number}_{'[…]' if index == REST else index}"


def index_ranges(indices: Iterable[int]) -> str:
    """`0-2,5`, of indices in order."""
    found = []
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        (_, first), *rest = run
        found.append(f"{first}-{rest[-1][1]}" if rest else f"{first}")
    return ",".join(found)


class ReplicaId(msgspec.Struct, frozen=True, order=True, gc=False):
    """One replica of one attempt of a job: what a container, its folder and its lock belong to."""

    job: JobId
    attempt: int
    """From 1."""
    rank: int
    """From 0."""

    def __str__(self) -> str:
        return f"{self.job}/{self.rank}#{self.attempt}"

    @property
    def folder(self) -> str:
        """A folder name that sorts by job, unique over attempts and replicas."""
        return f"{self.job}.{self.attempt}.{self.rank}"


class JobRef(msgspec.Struct, frozen=True):
    """What a person types: `123`, `123_4` (task), `123/2` (replica), `123#2` (attempt), `lab:123` (cluster)."""

    job: JobId
    task: int | None = None
    rank: int | None = None
    attempt: int | None = None
    cluster: str = ""
    tasks: tuple[int, ...] = ()
    """Several tasks, as one row of a list names them: `34_[0-1]`."""
    name: str = ""
    """The job's name, where no id was typed; `job` is 0 until somebody has looked it up."""


def replica_id_from_folder(name: str) -> ReplicaId | None:
    """The inverse of `ReplicaId.folder`; None where the name is not one."""
    parts = name.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    job, attempt, rank = map(int, parts)
    return ReplicaId(JobId(job), attempt, rank)
