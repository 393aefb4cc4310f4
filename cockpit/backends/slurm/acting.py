"""Changes a Slurm cluster by its commands.

Every change passes through these steps:

1. Look up the job as the controller has it now, and refuse what Slurm would refuse anyway (`preflight`), with a
   sentence that says why.
2. Translate the change to commands (`mapping.acts`).
3. Show the commands to the user, who may stop them here (`show`).
4. Run them one after the other, and turn Slurm's message of a refusal into a refusal with its kind.
5. Outdate the cached answers of all programs that report the change.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview
from cockpit.backends.slurm import preflight
from cockpit.backends.slurm.logs import output_path
from cockpit.backends.slurm.mapping import acts, directives
from cockpit.backends.slurm.mapping.acts import Command, NotPossible
from cockpit.backends.slurm.mapping.containers import PROBE, Runtime, runtime_of
from cockpit.backends.slurm.mapping.holding import extension, kept_until
from cockpit.backends.slurm.mapping.jobs import find_job
from cockpit.backends.slurm.mapping.values import job_id, slurm_id
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.preflight import refused
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import JOBS_REPORTED_BY, PROGRAMS
from cockpit.backends.slurm.wire.calls import AnswerLost, Failed, check_success
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
# In sbatch's arguments or a script: `--job-name=x`, `-J x`, `#SBATCH --job-name x`.
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
    ("Nothing deleted", RefusalKind.NOT_FOUND),
)
"""Kinds of refusals by a part of Slurm's message; any other message means that the request is invalid."""

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
    "change_accounts": lambda args: Command(acts.command(args.change)),
}
CHANGES = frozenset({*_BY_OP, "submit", "edit", "extend_hold"})
"""The operations that change something and for which there are commands; all others are absent with a reason."""


class Acts:
    """Runs the changes of one user on one cluster."""

    def __init__(self, commands: Commands, reading: Reading, user: str) -> None:
        self._commands, self._reading, self._user = commands, reading, user
        self._admin: bool | None = None
        self._runtime: Runtime | None = None
        self.look: Announced | None = None
        """Receives every command before it runs, and decides whether it does."""

    async def is_admin(self) -> bool:
        """Return whether the user is root, SlurmUser, or an operator or administrator in accounting."""
        # Asked once; a change of accounts asks again (`_outdate`).
        if self._admin is not None:
            return self._admin
        # `SlurmUser = slurm(64030)`
        owner = (await self._reading.config()).get("SlurmUser", "").partition("(")[0]
        level = "" if self._user in {"root", owner} else await self._reading.admin_level(self._user)
        is_admin = self._user in {"root", owner} or level in ADMINISTRATORS
        # Not remembered while accounting is away: then it is unknown.
        if level or is_admin or not self._reading.missing("sacctmgr list user"):
            self._admin = is_admin
        return is_admin

    async def commands(self, op: str, args: msgspec.Struct) -> list[Command]:
        """Return the commands of a change. Raises `RequestRefused` if Slurm has no such change, or would refuse it."""
        if isinstance(args, messages.SubmitArgs):
            commands = submissions(args.specs, await self.runtime(args.specs))
            return [*await self._folders(args.specs), *commands]
        try:
            await self._judge(op, args)
            if isinstance(args, messages.EditArgs):
                changes = await self._edits(args)
                return [await self._name_pending_tasks(each, args.job) for each in changes]
            if isinstance(args, messages.ExtendArgs):
                return extension(await self._job(args.job, None), args.seconds, admin=await self.is_admin())
            parts = await self._waiting_parts(op, args) if isinstance(args, messages.JobArgs) else [args]
            return [await self._name_pending_tasks(_BY_OP[op](each), getattr(each, "job", None)) for each in parts]
        except NotPossible as error:
            raise refused(RefusalKind.INVALID, str(error)) from None

    async def _edits(self, args: messages.EditArgs) -> list[Command]:
        job, spec = await self._job(args.job, None), args.spec
        if spec.output != job.spec.output:
            # The job's page shows the file of its output; a job file of its own has the folder.
            shown = await output_path(self._reading, await look_up(self._reading, job.id))
            if spec.output in {shown, posixpath.dirname(shown)}:
                spec = replace(spec, output=job.spec.output)
        return acts.edit(job, spec, await self._reading.version())

    async def act(self, op: str, args: msgspec.Struct) -> object:
        """Run a change and return the answer of its operation."""
        if isinstance(args, messages.ExtendArgs):
            # Before the change, whose comment replaces the old end.
            until = kept_until(await self._job(args.job, None))
            await self._carry_out(await self.commands(op, args))
            return messages.HeldUntil(until + 1000 * args.seconds)
        done = await self._carry_out(await self.commands(op, args))
        return messages.Submitted(tuple(map(_parse_job_id, filter(None, done)))) if op == "submit" else None

    async def direct(self, wanted: Directive) -> JobId | None:
        """Run a command that only Slurm has; return the id of the job that it submitted, if any."""
        try:
            await self._judge_directive(wanted)
            command = directives.command(wanted, on_this_disk=self._commands.on_this_disk)
            command = await self._name_pending_tasks(command, getattr(wanted, "job", None))
            (done,) = await self._carry_out([command])
        except NotPossible as error:
            raise refused(RefusalKind.INVALID, str(error)) from None
        return _parse_job_id(done) if isinstance(wanted, SubmitScript) else None

    async def show(self, commands: Sequence[CommandPreview]) -> None:
        """Show the commands to the user. Raises `NotRun` if they must not run."""
        if self.look is not None and not await self.look(commands):
            raise NotRun

    async def _carry_out(self, commands: Sequence[Command]) -> list[str]:
        """Run the commands one after the other and return their outputs.

        If one is refused, jobs that the earlier ones submitted are cancelled: several jobs are submitted all or none.
        """
        await self.show([await self._shown_command(each) for each in commands])
        done: list[str] = []
        for command in commands:
            try:
                done.append(await self._run(command))
            except CockpitError:
                # mkdir prints nothing, and a folder that was made may stay.
                submitted = [str(_parse_job_id(each)) for each in done if each and command.argv[0] == "sbatch"]
                for job in submitted:
                    await self._run(Command(("scancel", job)))
                raise
            # also after an error: the command may have taken effect in part
            finally:
                self._outdate(command.argv[0])
        return done

    def _outdate(self, program: str) -> None:
        """Outdate the answers that a change affects; a change of accounts may affect all of them, and `is_admin`."""
        if program == "sacctmgr":
            self._admin = None
        self._reading.forget(PROGRAMS if program == "sacctmgr" else JOBS_REPORTED_BY)

    async def runtime(self, specs: Sequence[JobSpec]) -> Runtime | None:
        """Return the cluster's container runtime, looked for once, when a job needs an image."""
        # A runtime that was not there is looked for again: it may have been installed, or the node was another one.
        if self._runtime is None and any(spec.image != HOST for spec in specs):
            self._runtime = runtime_of((await self._commands.run(PROBE, seconds=SECONDS)).stdout)
        return self._runtime

    async def _folders(self, specs: Sequence[JobSpec]) -> list[Command]:
        """Return commands that create missing output folders.

        Slurm writes no output into a missing folder, and does not report it. A transport that cannot run mkdir is no
        error.
        """
        commands = []
        for folder in dict.fromkeys(spec.output for spec in specs):
            status = await self._commands.run(("stat", "--format=%F", "--", folder), seconds=SECONDS)
            make = Command(("mkdir", "-p", "--", folder))
            with suppress(RequestRefused):
                if status.code and await self._commands.shown(make.argv, ""):
                    commands.append(make)
        return commands

    async def _shown_command(self, command: Command) -> CommandPreview:
        """Return the command as the user sees it; a transport's own form (curl) already contains the script."""
        words = await self._commands.shown(command.argv, command.stdin)
        return CommandPreview(words, command.stdin if words == command.argv else "")

    async def _run(self, command: Command) -> str:
        """Run a command in the user's time zone, which sbatch passes to the job, and return its output."""
        try:
            printed = await self._commands.run(
                command.argv, seconds=SECONDS, stdin=command.stdin.encode(), reading=False
            )
            return check_success(printed, command.argv).stdout.strip()
        # Not `Unreachable`: the user must know that the change may have happened.
        except AnswerLost as error:
            raise MayBeAccepted(str(error), advice=_where_to_look(command)) from None
        except Failed as failed:
            # Slurm's commands have one exit code for every refusal; only the message tells them apart.
            kind = next((kind for words, kind in _KINDS if words in str(failed)), RefusalKind.INVALID)
            # sacctmgr does not name what it found or missed.
            asked = f" The command was `{shlex.join(command.argv)}`." if command.argv[0] == "sacctmgr" else ""
            text = f"{failed}"
            if "invalid qos" in text.lower() and (advice := await self._which_qos(command)):
                asked = f"{'' if text.endswith('.') else '.'} {advice}"
            raise refused(kind, f"Slurm refused: {text}{asked}") from None

    async def _which_qos(self, command: Command) -> str:
        """Return what is wrong with the QOS of a refused command, and which ones exist; empty: neither is known."""
        self._reading.forget({"sacctmgr"})  # Slurm has just refused by what is there now
        try:
            accounts = await self._reading.accounts()
        except CockpitError:
            return ""
        return preflight.qos_advice(acts.wanted_qos(command), accounts, self._user)

    async def _judge(self, op: str, args: msgspec.Struct) -> None:
        """Raise `RequestRefused` if Slurm would refuse the change; of an array, for every one of its records."""
        number = getattr(args, "job", None)
        if number is None:
            return
        admin, refusals = await self.is_admin(), []
        for job in await self._jobs_of(number, getattr(args, "task", None)):
            try:
                preflight.judge(op, job)
                if not admin:
                    preflight.judge_owner(op, args, job, self._user)
            except RequestRefused as refusal:
                refusals.append(refusal)
            else:
                return
        # The first: `_jobs_of` puts the record that the user most likely means at the front.
        raise refusals[0]

    async def _judge_directive(self, wanted: Directive) -> None:
        """Refuse a directive that Slurm would refuse this user, or that changes another user's job."""
        if isinstance(wanted, SubmitScript) or await self.is_admin():
            return
        if isinstance(wanted, MoveToTop):
            if "enable_user_top" not in (await self._reading.config()).get("SchedulerParameters", ""):
                raise refused(
                    RefusalKind.UNAVAILABLE,
                    "This cluster lets no user move jobs to the top (enable_user_top is not among its "
                    "SchedulerParameters); a nice value lowers your other jobs instead.",
                )
        else:
            preflight.judge_directive(wanted, await self._job(wanted.job, wanted.task), self._user)

    async def _name_pending_tasks(self, command: Command, job: int | None) -> Command:
        """Return the command with the indices of an array's pending tasks, if `job` means these."""
        if job is None or task_of(job)[1] != REST:
            return command
        # Now, since tasks start all the time: a task that runs by now must not be among the indices.
        listed = next((each for each in await self._reading.jobs_now(JobId(job)) if each.id == job), None)
        if listed is None:
            raise refused(RefusalKind.NOT_FOUND, f"No task of array {task_of(job)[0]} waits any more.")
        replacements = {slurm_id(job): listed.words, f"JobId={slurm_id(job)}": f"JobId={listed.words}"}
        return command._replace(argv=tuple(replacements.get(word, word) for word in command.argv))

    async def _waiting_parts(self, op: str, args: messages.JobArgs) -> list[messages.JobArgs]:
        """Return arguments for the pending records of an array only, since Slurm refuses hold and release of others."""
        if op not in {"hold", "release"} or args.task is not None:
            return [args]
        jobs = await self._jobs_of(args.job, None)
        # scontrol takes the array's own id for all of its tasks at once.
        if all(job.state is JobState.QUEUED for job in jobs):
            return [args]
        return [replace(args, job=job.id) for job in jobs if not preflight.wrong_state(op, job)]

    async def _job(self, number: int, task: int | None) -> Job:
        return (await self._jobs_of(number, task))[0]

    async def _jobs_of(self, number: int, task: int | None) -> list[Job]:
        """Return the job of this id; for an array's own id the jobs of all its records, pending ones first.

        A change of a whole array is allowed if it is allowed for one of its records.
        """
        wanted = JobId(number) if task is None else job_id(number, task)
        listed = await self._reading.jobs_now(wanted)
        array = [each for each in listed if each.array is not None and each.array.array == wanted]
        if array:
            return [each.job for each in sorted(array, key=lambda each: (not each.waits, each.kind in ENDED))]
        known = find_job(listed, wanted)
        if known is not None:
            return [known.job]
        raise refused(RefusalKind.NOT_FOUND, f"There is no job {slurm_id(wanted)}, or it has ended.")


def submissions(specs: Sequence[JobSpec], runtime: Runtime | None) -> list[Command]:
    """Return the sbatch commands of the jobs.

    Raises `RequestRefused` with one line for each field that Slurm does not have, which begins with the field's path.
    """
    commands, errors = [], []
    for place, spec in enumerate(specs):
        try:
            commands.append(acts.submit(spec, runtime))
        except NotPossible as error:
            errors += [f"jobs[{place}].{line}" for line in str(error).splitlines()]
    if errors:
        raise refused(RefusalKind.INVALID, "\n".join(errors))
    return commands


def _where_to_look(command: Command) -> str:
    """Return the advice after a change without an answer: Slurm has no request ids, so the user must look."""
    if command.argv[0] != "sbatch":
        return "Look at what it changes before you run the command again."
    name = _JOB_NAME.search("\n".join((*command.argv, command.stdin)))
    named = f" --name={shlex.quote(name[1])}" if name is not None else ""
    return (
        f"Look for the job before you submit it again: `squeue --me{named} --sort=-V`, or where it may have ended "
        f"already `sacct{named} --starttime=now-1hour`. Other jobs of the same submission are cancelled."
    )


def _parse_job_id(printed: str) -> JobId:
    """Return the job id in the output of `sbatch --parsable`."""
    # With several clusters sbatch prints `1234;cluster`.
    return JobId(int(printed.split(";", maxsplit=1)[0]))
