"""Names of things. Job ids are increasing integers and are never used again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NewType

import msgspec

JobId = NewType("JobId", int)
NodeName = NewType("NodeName", str)
UserName = NewType("UserName", str)

Millis = NewType("Millis", int)
"""A moment: milliseconds since 1970-01-01 UTC. Fields of this type are named `*_at` or `*_until`."""


# The bit that marks a task's id: above the 26 bits of the array's number and the 26 bits of the index, and below
# 2^53, from which on programs that read JSON may lose the last digits of a number (RFC 8259, section 6).
# From high to low: the member of a fleet (from bit 53), whether the id is of a cluster that names tasks by two numbers
# (bit 52), the array's number (26 bits), the task's index (26 bits). JavaScript's numbers are exact up to 53 bits, so
# that a single cluster's ids may go through any JSON. Without bit 52, bit 51 marks the id of a job that its cluster
# knows by a name.
_FOREIGN = 1 << 52
_NUMBER_BITS = 26
_NUMBER = (1 << _NUMBER_BITS) - 1


def task_id(number: int, index: int) -> JobId:
    """Return the id of one task of an array on a cluster that names tasks by two numbers, such as Slurm. The ids sort
    by array, then by index. They are larger than all other ids, and small enough for numbers in JSON.

    Slurm's own numbers have 26 bits (`MAX_JOB_ID` is 0x03ffffff).
    """
    return JobId(_FOREIGN | number << _NUMBER_BITS | index)


REST = _NUMBER
"""The index that means all equal queued tasks of an array. Slurm's own indices end far below it."""


def rest_id(number: int) -> JobId:
    """Return the id of the remaining tasks of an array, for which Slurm keeps one record."""
    return task_id(number, REST)


_NAMED = 1 << 51
_MIXED_BITS = 20
_SECOND_BITS = 30
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Digits of base 32 without letters that look like others (Crockford's alphabet)."""
_NAMED_WORDS = re.compile(f"k([{_DIGITS}]{{10}})")


def named_id(seconds: int, mixed: int) -> JobId:
    """Return the id of a job that its cluster knows by a name, such as a Kubernetes object. Such ids sort by time.

    `seconds`: when the job was made, from any fixed moment, up to 34 years later; `mixed`: bits that differ between the
    jobs of one second, of which the lowest 20 count.
    """
    return JobId(_NAMED | (seconds % (1 << _SECOND_BITS)) << _MIXED_BITS | mixed % (1 << _MIXED_BITS))


def is_named(job: int) -> bool:
    """Return whether the job's cluster knows it by a name."""
    return bool(job & _NAMED) and not job & _FOREIGN


def named_words(job: int) -> str:
    """Return a short form of such an id: `k` and ten digits of base 32."""
    number = job & (_NAMED - 1)
    return "k" + "".join(_DIGITS[number >> shift & 31] for shift in range(45, -1, -5))


def named_id_of(words: str) -> JobId | None:
    """Return the inverse of `named_words`; None for any other text."""
    match = _NAMED_WORDS.fullmatch(words)
    if match is None:
        return None
    number = 0
    for digit in match[1]:
        number = number << 5 | _DIGITS.index(digit)
    return JobId(_NAMED | number)


_MEMBER_BIT = 53
_OWN = (1 << _MEMBER_BIT) - 1
_SENIORITY_BITS = _MEMBER_BIT + _NUMBER_BITS + 1


def member_id(member: int, job: int) -> JobId:
    """Return the id of a member's job where several clusters are shown as one; `member` counts from 1. Such ids stay
    inside one process: JSON's numbers have 53 bits."""
    return JobId(member << _MEMBER_BIT | job & _OWN)


def member_of(job: int) -> tuple[int, JobId]:
    """Return the member, 0 where there are none, and the id that it has there; the inverse of `member_id`."""
    return job >> _MEMBER_BIT, JobId(job & _OWN)


def task_of(job: int) -> tuple[int, int | None]:
    """Return the number of the job or array, and the task's index; the inverse of `task_id`, whichever cluster it is
    of."""
    job &= _OWN
    if not job & _FOREIGN:
        return job, None
    return (job ^ _FOREIGN) >> _NUMBER_BITS, job & _NUMBER


def seniority(job: int) -> int:
    """Return the key that orders jobs by submission: a task sorts at its array's number, whichever kind of id it has,
    and the jobs of one member before those of the next. Keys are unique."""
    number, index = task_of(job)
    # 0 is left to an id without an index: it sorts before the tasks of an array with the same number
    place = 0 if index is None else index + 1
    return job >> _MEMBER_BIT << _SENIORITY_BITS | number << _NUMBER_BITS + 1 | place


def is_apart(job: int) -> bool:
    """Return whether `seniority` may order ids differently from their numbers once this id is among them."""
    return job >= _FOREIGN


def job_words(job: int, component: tuple[int, int] | None = None) -> str:
    """Return the id as Slurm writes it: `123`, or `123_4` for a task; `123_[…]` for the remaining tasks of an array;
    `123+1` for a component of a heterogeneous job, by the id of its first component and its own number."""
    if component is not None:
        return f"{job_words(component[0])}+{component[1]}"
    if is_named(job):
        return named_words(job)
    number, index = task_of(job)
    if index is None:
        return str(number)
    return f"{number}_{'[…]' if index == REST else index}"


def index_ranges(indices: Iterable[int]) -> str:
    """Return sorted indices as ranges: `0-2,5`."""
    ranges = []
    # In a run of consecutive numbers the difference to the place in the list is constant.
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        (_, first), *rest = run
        ranges.append(f"{first}-{rest[-1][1]}" if rest else f"{first}")
    return ",".join(ranges)


class ReplicaId(msgspec.Struct, frozen=True, order=True, gc=False):
    """The id of one replica of one attempt of a job: the key of a container, its folder and its lock."""

    job: JobId
    attempt: int
    """The number of the attempt, from 1."""
    rank: int
    """The rank of the replica, from 0."""

    def __str__(self) -> str:
        return f"{self.job}/{self.rank}#{self.attempt}"

    @property
    def folder(self) -> str:
        """A folder name that sorts by job, unique over attempts and replicas."""
        return f"{self.job}.{self.attempt}.{self.rank}"


class JobRef(msgspec.Struct, frozen=True):
    """A job as a user types it: `123`, `123_4` (task), `123/2` (replica), `123#2` (attempt), `lab:123` (cluster)."""

    job: JobId
    task: int | None = None
    rank: int | None = None
    attempt: int | None = None
    cluster: str = ""
    tasks: tuple[int, ...] = ()
    """Several tasks, as one row of a list names them: `34_[0-1]`."""
    name: str = ""
    """The job's name if no id was typed; `job` is then 0 until the name is looked up."""


def replica_id_from_folder(name: str) -> ReplicaId | None:
    """Return the inverse of `ReplicaId.folder`; None where the name is not one."""
    parts = name.split(".")
    # isascii: isdigit alone accepts digits of other scripts.
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    job, attempt, rank = map(int, parts)
    return ReplicaId(JobId(job), attempt, rank)
