"""Acts on a cluster: the command is told before it is run, and what Slurm would refuse anyway is said before trying."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.backends.slurm.mapping import account_acts, acts
from cockpit.backends.slurm.mapping.acts import CannotBe, Command
from cockpit.backends.slurm.mapping.ids import job_id, slurm_id
from cockpit.backends.slurm.mapping.jobs import found
from cockpit.backends.slurm.mapping.records import settings
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.calls import Failed, checked
from cockpit.errors import CockpitError, NotRun, RequestRefused
from cockpit.model.asking import WantedPriority
from cockpit.model.ids import REST, JobId, task_of
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import PriorityWord
from cockpit.protocol import messages

if TYPE_CHECKING:
    from cockpit.backends.base import Announced
    from cockpit.backends.slurm.wire.calls import Commands

SECONDS = 30.0
ADMINISTRATORS = {"Administrator", "Operator"}
_KINDS = (
    ("Access/permission denied", RefusalKind.DENIED),
    ("Invalid job id", RefusalKind.NOT_FOUND),
    ("Invalid user", RefusalKind.DENIED),
    ("Job is no longer pending", RefusalKind.CONFLICT),
    ("already", RefusalKind.CONFLICT),
    ("Nothing modified", RefusalKind.CONFLICT),
    ("Nothing new added", RefusalKind.CONFLICT),
)
"""What sort of no Slurm's words are; all others are about what was asked for."""

_BY_OP: dict[str, Callable[[Any], Command]] = {
    "suspend": lambda args: acts.of_job("suspend", args),
    "resume": lambda args: acts.of_job("resume", args),
    "hold": lambda args: acts.of_job("hold", args),
    "release": lambda args: acts.of_job("release", args),
    "requeue": lambda args: acts.of_job("requeue", args),
    "cancel": acts.cancel,
    "set_priority": acts.set_priority,
    "set_time_limit": lambda args: acts.set_time_limit(args.job, args.task, args.limit),
    "drain_node": acts.drain_node,
    "resume_node": acts.resume_node,
    "make_reservation": lambda args: acts.make_reservation(args.reservation),
    "end_reservation": acts.end_reservation,
    "end_hold": lambda args: acts.end_hold(args.job),
    "change_accounts": lambda args: Command(account_acts.command(args.change)),
}
_NOT_THERE = {
    "delete": "Slurm's accounting keeps what has ended; nothing of it can be taken away from here.",
    "set_weights": "This cluster's weights stand in its slurm.conf: its administrator changes them there and runs "
    "`scontrol reconfigure`.",
    "apply_quota": "Slurm has no quota tree: limits are set with `cockpit accounts modify`.",
    "remove_quota": "Slurm has no quota tree.",
    "extend_hold": "How long this allocation is kept was fixed when the job was submitted; ask for a longer "
    "`debug_hold` window next time.",
}


class Acts:
    """What one person does on one cluster."""

    def __init__(self, commands: Commands, reading: Reading, asker: str) -> None:
        self._commands, self._reading, self._asker = commands, reading, asker
        self._admin: bool | None = None
        self.look: Announced | None = None
        """Sees every command before it is run."""

    async def is_admin(self) -> bool:
        """Root, the cluster's own user, or an operator in its accounting."""
        if self._admin is None:
            owner = settings(await self._reading.config()).get("SlurmUser", "").partition("(")[0]
            self._admin = (
                self._asker in {"root", owner} or await self._reading.admin_level(self._asker) in ADMINISTRATORS
            )
        return self._admin

    async def commands(self, op: str, args: msgspec.Struct) -> list[Command]:
        """What would be run. Raises `RequestRefused` where there is no such act, or it is known to fail."""
        if op in _NOT_THERE:
            raise _refused(RefusalKind.UNAVAILABLE, _NOT_THERE[op])
        try:
            if isinstance(args, messages.SubmitArgs):
                return _submissions(args)
            await self._judge(op, args)
            if isinstance(args, messages.EditArgs):
                return [await self._naming(acts.edit(await self._job(args.job, None), args.spec), args.job)]
            return [await self._naming(_BY_OP[op](args), getattr(args, "job", None))]
        except CannotBe as error:
            raise _refused(RefusalKind.INVALID, str(error)) from None

    async def act(self, op: str, args: msgspec.Struct) -> object:
        """Run it; what the verb answers."""
        done = []
        commands = await self.commands(op, args)
        shown = [await self._commands.shown(each.argv, each.stdin) for each in commands]
        if self.look is not None and not await self.look(shown):
            raise NotRun
        for command in commands:
            done.append(await self._run(command))
            self._reading.forget()
        return messages.Submitted(tuple(int(each.split(";")[0]) for each in done)) if op == "submit" else None

    async def _run(self, command: Command) -> str:
        """In the person's own time zone: a submission's becomes the job's."""
        printed = await self._commands.run(command.argv, seconds=SECONDS, stdin=command.stdin.encode(), reading=False)
        try:
            return checked(printed, command.argv).stdout.strip()
        except Failed as failed:
            kind = next((kind for words, kind in _KINDS if words in str(failed)), RefusalKind.INVALID)
            raise _refused(kind, f"Slurm says no: {failed}") from None

    async def _judge(self, op: str, args: msgspec.Struct) -> None:
        """What Slurm would refuse, or do silently to no effect."""
        job_number = getattr(args, "job", None)
        if job_number is None:
            return
        job = await self._job(job_number, getattr(args, "task", None))
        name = slurm_id(job.id)
        if job.state in ENDED and not job.kept:
            raise _refused(RefusalKind.CONFLICT, f"Job {name} has ended: it is {job.state}.")
        if op == "end_hold" and not job.kept:
            raise _refused(RefusalKind.CONFLICT, f"Job {name} is not kept: it is {job.state}.")
        wrong = _wrong_state(op, job)
        if wrong:
            raise _refused(RefusalKind.CONFLICT, f"Job {name} {wrong}.")
        if not await self.is_admin():
            self._judge_owner(op, args, job)

    def _judge_owner(self, op: str, args: msgspec.Struct, job: Job) -> None:
        if job.submitter.name != self._asker:
            raise _refused(RefusalKind.DENIED, f"Job {slurm_id(job.id)} is {job.submitter.name}'s, not yours.")
        if isinstance(args, messages.SetTimeLimitArgs):
            wanted = args.limit.seconds + (job.spec.time_limit_seconds if args.limit.beside else 0)
            if wanted > job.spec.time_limit_seconds and job.state is not JobState.QUEUED:
                raise _refused(
                    RefusalKind.DENIED,
                    f"Job {slurm_id(job.id)} runs, and Slurm lets only its administrators raise a running job's time "
                    "limit; owners may lower it.",
                )
        if isinstance(args, messages.SetPriorityArgs) and not _is_word(args.priority):
            raise _refused(
                RefusalKind.DENIED, "Only administrators of this cluster set a priority; a nice value lowers yours."
            )
        if op in {"suspend", "resume"}:
            raise _refused(RefusalKind.DENIED, "Slurm lets only its administrators suspend and resume jobs.")

    async def _naming(self, command: Command, job: int | None) -> Command:
        """With the tasks by their indices, where those are meant that an array has left."""
        if job is None or task_of(job)[1] != REST:
            return command
        listed = next((each for each in await self._reading.jobs() if each.id == job), None)
        if listed is None:
            raise _refused(RefusalKind.NOT_FOUND, f"No task of array {task_of(job)[0]} waits any more.")
        told = {slurm_id(job): listed.words, f"JobId={slurm_id(job)}": f"JobId={listed.words}"}
        return command._replace(argv=tuple(told.get(word, word) for word in command.argv))

    async def _job(self, number: int, task: int | None) -> Job:
        wanted = JobId(number) if task is None else job_id(number, task)
        known = found(await self._reading.jobs(), wanted)
        if known is not None:
            return known.job
        raise _refused(RefusalKind.NOT_FOUND, f"There is no job {slurm_id(wanted)}, or none that is not over.")


def _submissions(args: messages.SubmitArgs) -> list[Command]:
    found, wrong = [], []
    for place, spec in enumerate(args.specs):
        try:
            found.append(acts.submit(spec))
        except CannotBe as error:
            wrong += [f"jobs[{place}].{line}" for line in str(error).splitlines()]
    if wrong:
        raise CannotBe("\n".join(wrong))
    return found


def _is_word(wanted: WantedPriority) -> bool:
    return isinstance(wanted, PriorityWord)


def _wrong_state(op: str, job: Job) -> str:
    """Empty where the act makes sense."""
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


def _refused(kind: RefusalKind, message: str) -> CockpitError:
    return RequestRefused(Refusal(kind, message))
