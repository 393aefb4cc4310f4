"""Who may do what. `RIGHTS` is the one table of it, and `refuse` the one place where it is asked: before an operation
begins, and never in a face. A forged request meets the same answer.

An engine run by a user serves that user alone, as its administrator. On a machine-wide engine a job is its submitter's;
administrators may do everything; and what its `access` gives goes to the other members of its project.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.model.catalogue import Entry
    from cockpit.model.job import Job, Submitter


class Actor(msgspec.Struct, frozen=True):
    """Who asks, as the kernel said of the socket's other end."""

    who: Submitter
    admin: bool
    projects: frozenset[str] = frozenset()
    """The projects of the cluster's rules that the asker is in."""
    shared: bool = True
    """Whether this cluster lets jobs be shared at all."""

    @property
    def name(self) -> str:
        return self.who.name


class Right(StrEnum):
    """What an operation needs."""

    ASK = "ask"
    """Nothing: it tells each asker what that one may see, or decides itself what of theirs they may change."""
    LOOK = "look"
    """To see the job that it is about."""
    ACT = "act"
    """To do with that job what its owner may."""
    ADMINISTER = "administer"
    """To change what is everybody's."""


RIGHTS: Mapping[str, Right] = MappingProxyType(
    {
        "status": Right.ASK,
        "overview": Right.ASK,
        "jobs": Right.ASK,
        "subscribe": Right.ASK,
        "nodes": Right.ASK,
        "holds": Right.ASK,
        "priorities": Right.ASK,
        "reservations": Right.ASK,
        "rules": Right.ASK,
        "accounts": Right.ASK,
        "catalogue": Right.ASK,
        "accounting": Right.ASK,
        "spending": Right.ASK,
        "queues": Right.ASK,
        "request": Right.ASK,
        "snapshot": Right.ADMINISTER,
        "starts": Right.ASK,
        "predict": Right.ASK,
        "submit": Right.ASK,
        "change_accounts": Right.ASK,
        "change_catalogue": Right.ASK,
        "job": Right.LOOK,
        "events": Right.LOOK,
        "explain": Right.LOOK,
        "logs": Right.LOOK,
        "wait": Right.LOOK,
        "cancel": Right.ACT,
        "hold": Right.ACT,
        "release": Right.ACT,
        "suspend": Right.ACT,
        "resume": Right.ACT,
        "requeue": Right.ACT,
        "edit": Right.ACT,
        "delete": Right.ACT,
        "set_priority": Right.ACT,
        "set_time_limit": Right.ACT,
        "shell": Right.ACT,
        "extend_hold": Right.ACT,
        "end_hold": Right.ACT,
        "set_weights": Right.ADMINISTER,
        "make_reservation": Right.ADMINISTER,
        "end_reservation": Right.ADMINISTER,
        "drain_node": Right.ADMINISTER,
        "staged": Right.ADMINISTER,
        "unstage": Right.ADMINISTER,
        "resume_node": Right.ADMINISTER,
        "apply_quota": Right.ADMINISTER,
        "remove_quota": Right.ADMINISTER,
        "stop": Right.ADMINISTER,
    }
)
"""By name of the operation. One that is not here is nobody's."""


def access_to(actor: Actor, job: Job) -> Access:
    """What the actor may do with the job: all, look, or nothing."""
    if actor.admin or is_owner(actor, job):
        return Access.RW
    return job.spec.access if actor.shared and job.project in actor.projects else Access.NONE


def is_owner(actor: Actor, job: Job) -> bool:
    return job.submitter.uid == actor.who.uid


def may_see(actor: Actor, job: Job) -> bool:
    """Whether the job's row, details and logs are shown to the actor."""
    return access_to(actor, job) is not Access.NONE


def access_to_entry(actor: Actor, entry: Entry) -> Access:
    """What the actor may do with an entry of the catalogue: change it, use it for reading, or nothing."""
    if actor.admin or (entry.owner and entry.owner == actor.name):
        return Access.RW
    return entry.to_members if not entry.home or entry.home in actor.projects else Access.NONE


def refuse(actor: Actor, operation: str, job: Job | None = None) -> Refusal | None:
    """Why the actor may not have this, of the job where it is about one; None: may."""
    right = RIGHTS.get(operation, Right.ADMINISTER)
    if right is Right.ADMINISTER:
        return refuse_others(actor, operation.replace("_", " "))
    if job is None or right is Right.ASK:
        return None
    access = access_to(actor, job)
    if access is Access.NONE:
        return unknown(job.id)
    return _only_looking(operation, job) if right is Right.ACT and access is not Access.RW else None


def unknown(job_id: int) -> Refusal:
    """For somebody who may not see a job it does not exist."""
    return Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}. `cockpit jobs --all` lists yours.")


def refuse_unseen(actor: Actor, job: Job | None, job_id: int) -> Refusal | None:
    """That there is no such job, or none that the actor may see."""
    return unknown(job_id) if job is None or not may_see(actor, job) else None


def refuse_others(actor: Actor, deed: str) -> Refusal | None:
    """What only an administrator may do: `make a job very-urgent`."""
    return None if actor.admin else Refusal(RefusalKind.DENIED, f"Only an administrator may {deed}; ask one.")


def _only_looking(operation: str, job: Job) -> Refusal:
    whose = f"Job {job.id} is {visible(job.submitter.name)}'s, and project {visible(job.project)} may only look at it"
    deed = operation.replace("_", " ")
    return Refusal(RefusalKind.DENIED, f"{whose} (access: ro), so you may not {deed} it; `cockpit clone` copies it.")
