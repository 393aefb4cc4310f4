"""Acts on a cluster: the command is told before it is run, and what Slurm would refuse anyway is said before trying."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.backends.base import Shown
from cockpit.backends.slurm import preflight
from cockpit.backends.slurm.mapping import account_acts, acts, directives
from cockpit.backends.slurm.mapping.acts import CannotBe, Command
from cockpit.backends.slurm.mapping.containers import PROBE, Runtime, runtime_of
from cockpit.backends.slurm.mapping.holding import extension, kept_until
from cockpit.backends.slurm.mapping.ids import job_id, slurm_id
from cockpit.backends.slurm.mapping.jobs import found
from cockpit.backends.slurm.mapping.records import settings
from cockpit.backends.slurm.preflight import refused
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import JOBS_REPORTED_BY, PROGRAMS
from cockpit.backends.slurm.wire.calls import Failed, Unanswered, checked
from cockpit.errors import CockpitError, MayBeAccepted, NotRun, RequestRefused
from cockpit.model.directives import MoveToTop, SubmitScript
from cockpit.model.ids import REST, JobId, task_of
from cockpit.model.image import HOST
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.refusal import RefusalKind
from cockpit.protocol import messages

if TYPE_CHECKING:
    from cockpit.backends.base import Announced
    from cockpit.backends.slurm.wire.calls import Commands
    from cockpit.model.directives import Directive
    from cockpit.model.spec import JobSpec

SECONDS = 30.0
_JOB_NAME = re.compile(r"^(?:#SBATCH\s+)?(?:--job-name[= ]|-J ?)\s*['\"]?([^\s'\"]+)", re.MULTILINE)
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
}


class Acts:
    """What one person does on one cluster."""

    def __init__(self, commands: Commands, reading: Reading, asker: str) -> None:
        self._commands, self._reading, self._asker = commands, reading, asker
        self._admin: bool | None = None
        self._runtime: Runtime | None = None
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
            raise refused(RefusalKind.UNAVAILABLE, _NOT_THERE[op])
        if isinstance(args, messages.SubmitArgs):
            found = submissions(args.specs, await self.runtime(args.specs))
            return [*await self._folders(args.specs), *found]
        try:
            await self._judge(op, args)
            if isinstance(args, messages.EditArgs):
                changes = acts.edit(await self._job(args.job, None), args.spec, await self._reading.version())
                return [await self._naming(each, args.job) for each in changes]
            if isinstance(args, messages.ExtendArgs):
                return extension(await self._job(args.job, None), args.seconds, admin=await self.is_admin())
            parts = await self._waiting_parts(op, args) if isinstance(args, messages.JobArgs) else [args]
            return [await self._naming(_BY_OP[op](each), getattr(each, "job", None)) for each in parts]
        except CannotBe as error:
            raise refused(RefusalKind.INVALID, str(error)) from None

    async def act(self, op: str, args: msgspec.Struct) -> object:
        """Run it; what the verb answers."""
        until = kept_until(await self._job(args.job, None)) if isinstance(args, messages.ExtendArgs) else 0
        done = await self._carry_out(await self.commands(op, args))
        if isinstance(args, messages.ExtendArgs):
            return messages.HeldUntil(until + 1000 * args.seconds)
        return messages.Submitted(tuple(map(_submitted, filter(None, done)))) if op == "submit" else None

    async def direct(self, wanted: Directive) -> JobId | None:
        """What only Slurm does."""
        try:
            await self._judge_directive(wanted)
            command = directives.command(wanted, on_this_disk=self._commands.on_this_disk)
            command = await self._naming(command, getattr(wanted, "job", None))
            (done,) = await self._carry_out([command])
        except CannotBe as error:
            raise refused(RefusalKind.INVALID, str(error)) from None
        return _submitted(done) if isinstance(wanted, SubmitScript) else None

    async def show(self, commands: Sequence[Shown]) -> None:
        """Raises `NotRun` where they are not to be run."""
        if self.look is not None and not await self.look(commands):
            raise NotRun

    async def _carry_out(self, commands: Sequence[Command]) -> list[str]:
        """One after the other; what each printed. Submissions are undone where one of them is refused."""
        await self.show([await self._shown(each) for each in commands])
        done: list[str] = []
        for command in commands:
            try:
                done.append(await self._run(command))
            except CockpitError:
                submitted = [str(_submitted(each)) for each in done if each and command.argv[0] == "sbatch"]
                if submitted:
                    await self._run(Command(("scancel", *submitted)))
                raise
            finally:
                self._outdate(command.argv[0])
        return done

    def _outdate(self, program: str) -> None:
        """An act on accounts may change what everybody may do, and who is an administrator."""
        if program == "sacctmgr":
            self._admin = None
        self._reading.forget(PROGRAMS if program == "sacctmgr" else JOBS_REPORTED_BY)

    async def runtime(self, specs: Sequence[JobSpec]) -> Runtime | None:
        """What makes containers on this cluster; looked for once, when a job asks for an image."""
        if self._runtime is None and any(spec.image != HOST for spec in specs):
            self._runtime = runtime_of((await self._commands.run(PROBE, seconds=SECONDS)).stdout)
        return self._runtime

    async def _folders(self, specs: Sequence[JobSpec]) -> list[Command]:
        """Slurm writes into no folder that is not there, and says so nowhere. A way in that makes none goes on."""
        found = []
        for folder in dict.fromkeys(spec.output for spec in specs):
            seen = await self._commands.run(("stat", "--format=%F", "--", folder), seconds=SECONDS)
            make = Command(("mkdir", "-p", "--", folder))
            with suppress(RequestRefused):
                if seen.code and await self._commands.shown(make.argv, ""):
                    found.append(make)
        return found

    async def _shown(self, command: Command) -> Shown:
        """Where the way in has words of its own for it, they say all of it."""
        words = await self._commands.shown(command.argv, command.stdin)
        return Shown(words, command.stdin if words == command.argv else "")

    async def _run(self, command: Command) -> str:
        """In the person's own time zone: a submission's becomes the job's."""
        try:
            printed = await self._commands.run(
                command.argv, seconds=SECONDS, stdin=command.stdin.encode(), reading=False
            )
            return checked(printed, command.argv).stdout.strip()
        except Unanswered as error:
            if command.argv[0] != "sbatch":
                raise
            raise MayBeAccepted(str(error), advice=_where_to_look(command)) from None
        except Failed as failed:
            kind = next((kind for words, kind in _KINDS if words in str(failed)), RefusalKind.INVALID)
            raise refused(kind, f"Slurm says no: {failed}") from None

    async def _judge(self, op: str, args: msgspec.Struct) -> None:
        number = getattr(args, "job", None)
        if number is None:
            return
        admin, refusals = await self.is_admin(), []
        for job in await self._meant(number, getattr(args, "task", None)):
            try:
                preflight.judge(op, job)
                if not admin:
                    preflight.judge_owner(op, args, job, self._asker)
            except RequestRefused as refusal:
                refusals.append(refusal)
            else:
                return
        raise refusals[0]

    async def _judge_directive(self, wanted: Directive) -> None:
        if isinstance(wanted, SubmitScript) or await self.is_admin():
            return
        if isinstance(wanted, MoveToTop):
            if "enable_user_top" not in settings(await self._reading.config()).get("SchedulerParameters", ""):
                raise refused(
                    RefusalKind.UNAVAILABLE,
                    "This cluster lets nobody move jobs to the top (enable_user_top is not among its "
                    "SchedulerParameters); a nice value lowers your other jobs instead.",
                )
        else:
            preflight.judge_directive(wanted, await self._job(wanted.job, wanted.task), self._asker)

    async def _naming(self, command: Command, job: int | None) -> Command:
        """With the tasks by their indices, where those are meant that an array has left."""
        if job is None or task_of(job)[1] != REST:
            return command
        listed = next((each for each in await self._reading.jobs_now(JobId(job)) if each.id == job), None)
        if listed is None:
            raise refused(RefusalKind.NOT_FOUND, f"No task of array {task_of(job)[0]} waits any more.")
        told = {slurm_id(job): listed.words, f"JobId={slurm_id(job)}": f"JobId={listed.words}"}
        return command._replace(argv=tuple(told.get(word, word) for word in command.argv))

    async def _waiting_parts(self, op: str, args: messages.JobArgs) -> list[messages.JobArgs]:
        """Of an array some of whose tasks have started, those that wait: Slurm would call the others an error."""
        if op not in {"hold", "release"} or args.task is not None:
            return [args]
        jobs = await self._meant(args.job, None)
        if all(job.state is JobState.QUEUED for job in jobs):
            return [args]
        return [replace(args, job=job.id) for job in jobs if not preflight.wrong_state(op, job)]

    async def _job(self, number: int, task: int | None) -> Job:
        return (await self._meant(number, task))[0]

    async def _meant(self, number: int, task: int | None) -> list[Job]:
        """The job of this id. An array's own id stands for all its records, those that wait first: an act on it is
        right where it is for one of them."""
        wanted = JobId(number) if task is None else job_id(number, task)
        listed = await self._reading.jobs_now(wanted)
        array = [each for each in listed if each.array is not None and each.array.array == wanted]
        if array:
            return [each.job for each in sorted(array, key=lambda each: (not each.waits, each.kind in ENDED))]
        known = found(listed, wanted)
        if known is not None:
            return [known.job]
        raise refused(RefusalKind.NOT_FOUND, f"There is no job {slurm_id(wanted)}, or none that is not over.")


def submissions(specs: Sequence[JobSpec], runtime: Runtime | None) -> list[Command]:
    """Raises `RequestRefused` with one line for each field that Slurm has no word for, led by its path."""
    found, wrong = [], []
    for place, spec in enumerate(specs):
        try:
            found.append(acts.submit(spec, runtime))
        except CannotBe as error:
            wrong += [f"jobs[{place}].{line}" for line in str(error).splitlines()]
    if wrong:
        raise refused(RefusalKind.INVALID, "\n".join(wrong))
    return found


def _where_to_look(command: Command) -> str:
    """Slurm knows no ids of requests: a person compares names and times."""
    found = _JOB_NAME.search("\n".join((*command.argv, command.stdin)))
    named = f" --name={shlex.quote(found[1])}" if found is not None else ""
    return (
        f"Look for the job before you submit it again: `squeue --me{named} --sort=-V`, or where it may have ended "
        f"already `sacct{named} --starttime=now-1hour`. Other jobs of the same submission are cancelled."
    )


def _submitted(printed: str) -> JobId:
    """Of what `sbatch --parsable` prints."""
    return JobId(int(printed.split(";", maxsplit=1)[0]))
