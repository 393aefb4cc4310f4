"""Names of things. Job ids are increasing integers and are never used again."""

from __future__ import annotations

from typing import NewType

import msgspec

JobId = NewType("JobId", int)
NodeName = NewType("NodeName", str)
UserName = NewType("UserName", str)

Millis = NewType("Millis", int)
"""A moment: milliseconds since 1970-01-01 UTC. Fields of this type are named `*_at` or `*_until`."""


class ReplicaId(msgspec.Struct, frozen=True, order=True):
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
    """What a person types for a job: `123`, task `123_4`, replica `123/2`, attempt `123#2`, cluster `lab:123`."""

    job: JobId
    task: int | None = None
    rank: int | None = None
    attempt: int | None = None
    cluster: str = ""


def replica_id_from_folder(name: str) -> ReplicaId | None:
    """The inverse of `ReplicaId.folder`; None where the name is not one."""
    parts = name.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    job, attempt, rank = map(int, parts)
    return ReplicaId(JobId(job), attempt, rank)
