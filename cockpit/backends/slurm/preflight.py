"""Refuses changes that Slurm would refuse, or accept without effect, before they are tried, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.errors import RequestRefused
from cockpit.model.directives import UpdateJob
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import PriorityWord
from cockpit.protocol import messages

if TYPE_CHECKING:
    import msgspec

    from cockpit.model.accounts import Accounts
    from cockpit.model.directives import Directive

_ON_KEPT = frozenset({"end_hold", "extend_hold"})
_ADMINISTRATORS_FIELDS = frozenset({"admincomment", "sitefactor", "priority", "reboot"})


def refused(kind: RefusalKind, message: str) -> RequestRefused:
    return RequestRefused(Refusal(kind, message))


def judge(op: str, job: Job) -> None:
    """Check a change of a job for every user. Raises `RequestRefused`."""
    name = slurm_id(job.id)
    # scontrol(1): requeue also takes a job that has completed, while the controller still has it.
    if job.state in ENDED and not job.kept and op != "requeue":
        raise refused(RefusalKind.CONFLICT, f"Job {name} has ended: it is {job.state}.")
    if op in _ON_KEPT and not job.kept:
        raise refused(RefusalKind.CONFLICT, f"Job {name} has no held container: it is {job.state}.")
    if wrong := wrong_state(op, job):
        raise refused(RefusalKind.CONFLICT, f"Job {name} {wrong}.")


def judge_owner(op: str, args: msgspec.Struct, job: Job, user: str) -> None:
    """Check a change of a job by a user who is not an administrator. Raises `RequestRefused`."""
    if job.submitter.name != user:
        raise refused(RefusalKind.DENIED, f"Job {slurm_id(job.id)} is {job.submitter.name}'s, not yours.")
    if reason := _beyond_owners(op, args, job):
        raise refused(RefusalKind.DENIED, reason)


def judge_directive(wanted: Directive, job: Job, user: str) -> None:
    """Check a Slurm command by a user who is not an administrator. Raises `RequestRefused`."""
    judge_owner("", wanted, job, user)
    for name, value in wanted.fields.items() if isinstance(wanted, UpdateJob) else ():
        if name.lower() in _ADMINISTRATORS_FIELDS:
            raise refused(RefusalKind.DENIED, f"{name} is for administrators of this cluster; Nice lowers a job.")
        if name.lower() == "nice" and value.startswith("-"):
            raise refused(RefusalKind.DENIED, "Only administrators of this cluster give a negative nice value.")


def _beyond_owners(op: str, args: msgspec.Struct, job: Job) -> str:
    """Return why Slurm does not let a job's owner do this; empty if it does."""
    if isinstance(args, messages.SetTimeLimitArgs):
        wanted = args.limit.seconds + (job.spec.time_limit_seconds if args.limit.beside else 0)
        # scontrol(1), TimeLimit: only the administrator, SlurmUser or root may increase it.
        if wanted > job.spec.time_limit_seconds and job.state is not JobState.QUEUED:
            return (
                f"Job {slurm_id(job.id)} runs, and Slurm lets only its administrators raise a running job's time "
                "limit; owners may lower it."
            )
    if isinstance(args, messages.SetPriorityArgs) and not isinstance(args.priority, PriorityWord):
        return "Only administrators of this cluster set a priority; a nice value lowers yours."
    if isinstance(args, messages.EditArgs):
        for word, attribute in (("exclusive", "exclusive"), ("deadline", "deadline_at")):
            if getattr(args.spec, attribute) != getattr(job.spec, attribute):
                return f"Slurm lets only its administrators change `{word}` of a job that waits: submit a copy (clone)."
    if op in {"suspend", "resume"}:
        return "Slurm lets only its administrators suspend and resume jobs."
    return ""


def qos_advice(wanted: str, accounts: Accounts, user: str) -> str:
    """Return what is wrong with a QOS that Slurm refused, and which ones the user may use; empty: none are known.

    `wanted`: the QOS of the command; empty: unknown.
    """
    if not accounts.qos:
        return ""
    own = {name for each in accounts.associations.values() if each.user == user for name in each.qos}
    usable = ", ".join(sorted(own & accounts.qos.keys() or accounts.qos))
    which = f"You may use: {usable}." if own else f"This cluster has: {usable}."
    if not wanted:
        return which
    as_word = f", which the priority {wanted} is on Slurm" if wanted in set(PriorityWord) else ""
    if wanted not in accounts.qos:
        return f"This cluster has no QOS {wanted}{as_word}. {which}"
    return f"The QOS {wanted}{as_word} is not among those of the job's user and account. {which}"


def wrong_state(op: str, job: Job) -> str:
    """Return why the job's state does not allow the change; empty if it does."""
    queued = job.state is JobState.QUEUED
    if op == "hold" and (not queued or job.held_by):
        return f"is held by {job.held_by} already" if job.held_by else f"is {job.state}; only a queued job can be held"
    if op == "release" and not (queued and job.held_by):
        return "is not held"
    if op in {"suspend", "requeue"} and queued:
        return "has not started"
    if op == "resume" and job.state is not JobState.SUSPENDED:
        return f"is not suspended but {job.state}"
    return "has started: it cannot be edited" if op == "edit" and not queued else ""
