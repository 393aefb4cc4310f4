"""Decides which user may carry out which operation.

`protocol.operations` declares the right that each operation needs, and `refuse` is the only function that applies it:
in the engine, before an operation begins, so that a forged request gets the same answer as one from a screen.

An engine started by a user serves only that user, as its administrator. On a machine-wide engine a job belongs to its
submitter, other members of its project have the access that its `access` grants, and administrators may do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.model.access_level import AccessLevel
from cockpit.model.operations import Right
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Access
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.catalogue import Entry
    from cockpit.model.job import Job, Submitter


class Actor(msgspec.Struct, frozen=True):
    """The user who makes a request, as the kernel names the process at the other end of the socket."""

    who: Submitter
    admin: bool
    projects: frozenset[str] = frozenset()
    """The projects of the cluster's rules of which the user is a member."""
    shared: bool = True
    """Whether the cluster allows to share jobs."""

    level: str = ""
    """The access level of the user's session, see `model.access_level`; empty: all rights of the user."""

    @property
    def name(self) -> str:
        """The user's name."""
        return self.who.name


def limited(actor: Actor, level: str) -> Actor:
    """Return the actor with the rights that are left at an access level: only `admin` keeps an administrator's."""
    if not level:
        return actor
    return msgspec.structs.replace(actor, admin=actor.admin and level == AccessLevel.ADMIN, level=level)


def access_to(actor: Actor, job: Job) -> Access:
    """Return the actor's access to the job: `rw`, `ro` or `none`."""
    if actor.admin or is_owner(actor, job):
        return Access.RW
    return job.spec.access if actor.shared and job.project in actor.projects else Access.NONE


def is_owner(actor: Actor, job: Job) -> bool:
    """Tell whether the actor submitted the job."""
    # By the user id, which the kernel vouches for; a name may be another user's later.
    return job.submitter.uid == actor.who.uid


def may_see(actor: Actor, job: Job) -> bool:
    """Tell whether the actor may see the job's row, details and logs."""
    return access_to(actor, job) is not Access.NONE


def access_to_entry(actor: Actor, entry: Entry) -> Access:
    """Return the actor's access to an entry of the catalogue: `rw` to change it, `ro` to use it, or `none`."""
    if actor.admin or (entry.owner and entry.owner == actor.name):
        return Access.RW
    return entry.to_members if not entry.home or entry.home in actor.projects else Access.NONE


def refuse(actor: Actor, right: Right, operation: str, job: Job | None = None) -> Refusal | None:
    """Return why the actor may not carry out the operation, on `job` if it is about one; None: the actor may.

    `right`: what the operation needs. A job that the actor may not see is refused as if it did not exist.
    """
    if right is Right.ADMINISTER:
        return refuse_others(actor, operation.replace("_", " "))
    if job is None or right is Right.ASK:
        return None
    # The same words as for an id that does not exist: else a stranger could find out which ids are in use.
    access = access_to(actor, job)
    if access is Access.NONE:
        return unknown(job.id)
    return _only_visible(operation, job) if right is Right.ACT and access is not Access.RW else None


def unknown(job_id: int) -> Refusal:
    """Refuse a request about a job that does not exist, or that the user may not see."""
    return Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}. `cockpit jobs --all` lists yours.")


def refuse_unseen(actor: Actor, job: Job | None, job_id: int) -> Refusal | None:
    """Return the refusal if the job does not exist or the actor may not see it; None: the actor may."""
    return unknown(job_id) if job is None or not may_see(actor, job) else None


def refuse_others(actor: Actor, action: str) -> Refusal | None:
    """Refuse an action to all but administrators. `action`: a verb phrase, such as `make a job very-urgent`."""
    return None if actor.admin else Refusal(RefusalKind.DENIED, f"Only an administrator may {action}; ask one.")


def _only_visible(operation: str, job: Job) -> Refusal:
    """Refuse to change a job that the user may only see."""
    owner = (
        f"Job {job.shown_id} is {visible(job.submitter.name)}'s, and project {visible(job.project)} may only look at it"
    )
    action = operation.replace("_", " ")
    return Refusal(RefusalKind.DENIED, f"{owner} (access: ro), so you may not {action} it; `cockpit clone` copies it.")
