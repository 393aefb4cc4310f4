"""Who may do what with a job. Decided here, never in a face: a forged request meets the same answer.

An engine run by a user serves that user alone. On a machine-wide engine a job belongs to its submitter and to
administrators (root); members' access by project comes with the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.reasons import BehindHead, MakingRoom, StandsStill, WouldDelay
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.model.job import Job, Submitter
    from cockpit.model.reasons import Explanation, Reason

HIDDEN_JOB = JobId(0)
"""Stands for a job that the asker may not see."""


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


def refuse_others(actor: Actor, deed: str) -> Refusal | None:
    """What only an administrator may do: `make reservations`."""
    return None if actor.admin else Refusal(RefusalKind.DENIED, f"Only an administrator may {deed}; ask one.")


def shown_reason(actor: Actor, reason: Reason | None, jobs: Mapping[JobId, Job]) -> Reason | None:
    """A reason without the job that it names, where the actor may not see that."""
    if isinstance(reason, MakingRoom | StandsStill) and not actor.admin:
        return replace(reason, jobs=tuple(job if _sees(actor, job, jobs) else HIDDEN_JOB for job in reason.jobs))
    if actor.admin or not isinstance(reason, WouldDelay | BehindHead) or _sees(actor, reason.ahead, jobs):
        return reason
    return replace(reason, ahead=HIDDEN_JOB)


def shown_explanation(actor: Actor, explanation: Explanation, jobs: Mapping[JobId, Job]) -> Explanation:
    """An explanation that names only jobs which the actor may see; the place in the queue counts all."""
    return replace(
        explanation,
        reason=shown_reason(actor, explanation.reason, jobs),
        ahead=tuple(job for job in explanation.ahead if _sees(actor, job, jobs)),
    )


def _sees(actor: Actor, job: JobId, jobs: Mapping[JobId, Job]) -> bool:
    found = jobs.get(job)
    return actor.admin or (found is not None and may_see(actor, found))
