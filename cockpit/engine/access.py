"""Who may do what with a job. Decided here, never in a face: a forged request meets the same answer.

An engine run by a user serves that user alone. On a machine-wide engine a job belongs to its submitter and to
administrators (root); members' access by project comes with the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.model.job import Job, Submitter


class Actor(msgspec.Struct, frozen=True):
    """Who asks, as the kernel said of the socket's other end."""

    who: Submitter
    admin: bool

    @property
    def name(self) -> str:
        return self.who.name


def may_see(actor: Actor, job: Job) -> bool:
    """Whether the job's row, details and logs are shown to the actor."""
    return actor.admin or job.submitter.uid == actor.who.uid


def refuse_unseen(actor: Actor, job: Job | None, job_id: int) -> Refusal | None:
    """For somebody who may not see a job it does not exist."""
    if job is None or not may_see(actor, job):
        return Refusal(RefusalKind.NOT_FOUND, f"There is no job {job_id}. `cockpit jobs --all` lists yours.")
    return None
