"""Translates every change to the Slurm command that does it; text of users is one argument and never an option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.containers import Runtime
from cockpit.backends.slurm.mapping.refusals import refusals
from cockpit.backends.slurm.mapping.script import asked_seconds, dependency_text, gres, moment_text, qos, submission
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.formats.slurm.sacctmgr import change_words
from cockpit.formats.slurm.spec_fields import slurm_time
from cockpit.model import accountchange as change
from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.spec import JobSpec, Mode, PriorityWord
from cockpit.protocol import messages


class Command(NamedTuple):
    """A program with its arguments, and its standard input."""

    argv: tuple[str, ...]
    stdin: str = ""


EXCLUSIVE_IS_FIXED = (26, 5)
"""The Slurm version from which OverSubscribe only concerns CPUs, so that scontrol cannot set whole nodes any more."""


class NotPossible(Exception):
    """Slurm has no such change, or would refuse it; the error text says why and what to do instead."""


def of_job(op: str, args: messages.JobArgs) -> Command:
    """Return scontrol's command for `hold`, `release`, `suspend`, `resume` or `requeue`."""
    return Command(("scontrol", op, slurm_id(args.job, args.task)))


def cancel(args: messages.CancelArgs) -> Command:
    """Return scancel: SIGTERM, and SIGKILL after the cluster's KillWait; `grace_seconds` 0 kills at once."""
    job = slurm_id(args.job, args.task)
    if args.grace_seconds is None:
        return Command(("scancel", job))
    if args.grace_seconds == 0:
        # --full: also the batch script and its children; without it a signal reaches the steps alone.
        return Command(("scancel", "--full", "--signal=KILL", job))
    raise NotPossible("Slurm kills after its own KillWait, which is the cluster's: cancel without --grace, or --now.")


def end_hold(job: int) -> Command:
    """Return the command that ends a debug hold: the job's wrapper ends with the exit code of the job's command."""
    # --batch: the script alone, whose trap is the hold (`wrapper`). Steps would be ended by the signal.
    return Command(("scancel", "--batch", "--signal=USR1", slurm_id(job)))


def submit(spec: JobSpec, runtime: Runtime | None = None) -> Command:
    """Return the sbatch command. Raises `NotPossible` with one line for each field that Slurm does not support."""
    wrong = list(refusals(spec, runtime))
    if wrong:
        raise NotPossible("\n".join(wrong))
    return Command(*submission(spec, runtime))


def set_priority(args: messages.SetPriorityArgs) -> Command:
    if isinstance(args.priority, SiteFactor):
        return _update(args.job, args.task, f"SiteFactor={args.priority.factor}")
    if isinstance(args.priority, PriorityWord):
        return _update(args.job, args.task, f"QOS={args.priority}")
    return _update(args.job, args.task, f"Priority={args.priority}")


def set_time_limit(job: JobId, task: int | None, limit: WantedLimit) -> Command:
    """Return the change of a time limit; Slurm counts whole minutes, so a limit is rounded up."""
    if limit.beside:
        # Up in both directions, so that a limit is never shortened by less than was asked for, nor extended by less.
        minutes = -(-abs(limit.seconds) // 60)
        return _update(job, task, f"TimeLimit={'-' if limit.seconds < 0 else '+'}{minutes}")
    return _update(job, task, f"TimeLimit={slurm_time(limit.seconds)}")


_CHANGEABLE = frozenset(
    {
        *("name", "partitions", "account", "qos", "priority", "nodes", "specs", "time_limit_seconds", "dependencies"),
        *("reservation", "node_names", "nice", "begin_at", "deadline_at", "exclusive"),
    }
)
"""Fields that Slurm changes in a waiting job."""
_DERIVED = frozenset({"limit_by_default", "image_found", "image_mpi", "access"})
"""Fields that no user writes."""
_FIXED = tuple(name for name in JobSpec.__struct_fields__ if name not in _CHANGEABLE | _DERIVED)
"""Fields that are in the job's script or in sbatch's options alone."""


def edit(job: Job, spec: JobSpec, version: tuple[int, ...]) -> list[Command]:
    """Return one update with everything that differs; how many tasks of an array run at once is the whole array's.

    Raises `NotPossible` for what Slurm of this version changes in no waiting job. `spec.output` must be as `job` has it
    where the user left it.
    """
    if spec.hold:
        raise NotPossible("hold: an edit does not hold a job; `cockpit hold` does.")
    changes = list(_changes(job.spec, spec))
    commands = [_update(job.id, None, *changes)] if changes else []
    # Its own command: the limit belongs to the array, whatever task or record `job` is.
    if job.array is not None and spec.array is not None and spec.array.at_once != job.array.at_once:
        commands.append(_update(job.array.array, None, f"ArrayTaskThrottle={spec.array.at_once}"))
    fixed = [name for name in _FIXED if _differs(job.spec, spec, name)]
    if version >= EXCLUSIVE_IS_FIXED and spec.exclusive != job.spec.exclusive:
        fixed.append("exclusive")
    if fixed:
        raise NotPossible(
            f"Slurm changes no {' and no '.join(fixed)} of a job that waits: cancel it and submit a copy (clone)."
        )
    # After `fixed`, whose refusal says more.
    if not commands:
        raise NotPossible("The edit changes nothing.")
    return commands


def _differs(before: JobSpec, after: JobSpec, name: str) -> bool:
    was, now = getattr(before, name), getattr(after, name)
    # The limit of tasks at once is compared by `edit`, and it can be changed.
    if name == "array" and was is not None and now is not None:
        return set(was.indices) != set(now.indices)
    if name == "mode":  # the list does not have it, and several nodes need one in a job file
        return now not in {was, None, Mode.SLURM}
    return bool(was != now)


def _changes(before: JobSpec, after: JobSpec) -> Iterator[str]:
    """Yield the settings of `scontrol update` for the fields that differ."""
    was, now = before.specs[0], after.specs[0]
    words = (
        ("JobName", before.name, after.name),
        ("Partition", ",".join(before.partitions), ",".join(after.partitions)),
        ("Account", before.account or "", after.account or ""),
        # A new priority word wins over the old QOS, which is the word that the job was submitted with.
        ("QOS", qos(before), qos(after if after.priority is before.priority else replace(after, qos=None))),
        ("NumNodes", str(before.nodes), str(after.nodes)),
        # Slurm counts a job's CPUs as a whole, cockpit those of each node.
        ("NumCPUs", str(was.cpus * before.nodes), str(now.cpus * after.nodes)),
        ("MinMemoryNode", str(was.memory_mib), str(now.memory_mib)),
        ("TresPerNode", _cards(before), _cards(after)),
        ("TimeLimit", slurm_time(before.time_limit_seconds), slurm_time(asked_seconds(after))),
        ("Dependency", dependency_text(before.dependencies), dependency_text(after.dependencies)),
        ("ReservationName", before.reservation, after.reservation),
        ("ReqNodeList", ",".join(before.node_names), ",".join(after.node_names)),
        ("Nice", str(before.nice), str(after.nice)),
        ("StartTime", moment_text(before.begin_at), moment_text(after.begin_at) or "now"),
        ("Deadline", moment_text(before.deadline_at), moment_text(after.deadline_at)),
        # `OverSubscribe=no` is how scontrol says --exclusive.
        ("OverSubscribe", "no" if before.exclusive else "yes", "no" if after.exclusive else "yes"),
    )
    for name, old, new in words:
        # `now` differs from the empty text of no begin time, though nothing was changed.
        if old != new and not (name == "StartTime" and before.begin_at == after.begin_at):
            yield f"{name}={new}"


def _cards(spec: JobSpec) -> str:
    each = spec.specs[0]
    return f"gres/{gres(each)}" if each.card_milli else ""


def drain_node(args: messages.DrainArgs) -> Command:
    if args.within_seconds is not None:
        raise NotPossible(
            "within: Slurm lets jobs keep running on a drained node; leave it out, and cancel or requeue them"
        )
    return Command(("scontrol", "update", f"NodeName={args.name}", "State=DRAIN", f"Reason={args.reason}"))


def resume_node(args: messages.NameArgs) -> Command:
    # RESUME, for a drained and for a down node alike: slurmctld finds out by itself whether the node is idle or busy.
    return Command(("scontrol", "update", f"NodeName={args.name}", "State=RESUME"))


def make_reservation(wanted: Reservation) -> Command:
    """Return the command for a reservation. A maintenance is given to root, since Slurm requires a user."""
    who = [f"Users={','.join(wanted.users)}"] if wanted.users else []
    who += [f"Accounts={','.join(wanted.accounts)}"] if wanted.accounts else []
    # IGNORE_JOBS: without it Slurm refuses a reservation of nodes on which jobs run.
    flags = ["Flags=MAINT,IGNORE_JOBS"] if wanted.maintenance else []
    times = (f"StartTime={moment_text(wanted.start_at)}", f"EndTime={moment_text(wanted.end_at)}")
    nodes = f"Nodes={','.join(wanted.nodes)}"
    own = (f"ReservationName={wanted.name}", *times, nodes, *(who or ["Users=root"]), *flags)
    return Command(("scontrol", "create", "reservation", *own))


def end_reservation(args: messages.NameArgs) -> Command:
    return Command(("scontrol", "delete", f"ReservationName={args.name}"))


def _update(job: int, task: int | None, *changes: str) -> Command:
    return Command(("scontrol", "update", f"JobId={slurm_id(job, task)}", *changes))


def wanted_qos(command: Command) -> str:
    """Return the QOS that a command of scontrol or sbatch asks for; empty: the default, or one that a script names."""
    named = (word.partition("=")[2] for word in command.argv if word.startswith(("QOS=", "--qos=")))
    return next(named, "")


_HEAD = ("sacctmgr", "--immediate", "--quiet")


def command(wanted: change.AccountChange) -> tuple[str, ...]:
    """Return the sacctmgr command for a change; it asks for no confirmation."""
    # --immediate: sacctmgr would ask for a confirmation, for which there is no terminal.
    return (*_HEAD, *_words(wanted))


def _words(wanted: change.AccountChange) -> Iterator[str]:
    """Yield the arguments of sacctmgr for a change."""
    match wanted:
        case change.AddUser() | change.ModifyUser() | change.RemoveUser():
            yield from _of_user(wanted)
        case change.AddCoordinators() | change.RemoveCoordinators():
            verb = "add" if isinstance(wanted, change.AddCoordinators) else "delete"
            yield from (verb, "coordinator", f"Accounts={wanted.account}", f"Names={','.join(wanted.users)}")
        case change.AddAccount() | change.AddQos():
            yield from ("add", _KIND[type(wanted)], wanted.name, *change_words(wanted.change))
        case change.ModifyAccount() | change.ModifyQos():
            place = ("where", f"name={wanted.name}", "set")
            yield from ("modify", _KIND[type(wanted)], *place, *change_words(wanted.change))
        case change.RemoveAccount() | change.RemoveQos():
            yield from ("delete", _KIND[type(wanted)], "where", f"name={wanted.name}")


_KIND: dict[type, str] = {
    **dict.fromkeys((change.AddAccount, change.ModifyAccount, change.RemoveAccount), "account"),
    **dict.fromkeys((change.AddQos, change.ModifyQos, change.RemoveQos), "qos"),
}


def _of_user(wanted: change.AddUser | change.ModifyUser | change.RemoveUser) -> Iterator[str]:
    """Yield the arguments of sacctmgr for a change of a user's association."""
    if isinstance(wanted, change.AddUser):
        yield from ("add", "user", wanted.user, f"Accounts={wanted.account}", *_partition_setting(wanted.partition))
        yield from change_words(wanted.change)
        return
    where = ("where", f"name={wanted.user}", *_account_setting(wanted.account), *_partition_setting(wanted.partition))
    if isinstance(wanted, change.RemoveUser):
        yield from ("delete", "user", *where)
        return
    # sacctmgr sets the default account as a property of the user, beside those of the association (`change_words`).
    default = (f"DefaultAccount={wanted.account}",) if wanted.change.default and wanted.account else ()
    yield from ("modify", "user", *where, "set", *change_words(wanted.change), *default)


def _account_setting(account: str) -> tuple[str, ...]:
    return (f"account={account}",) if account else ()


def _partition_setting(partition: str) -> tuple[str, ...]:
    return (f"Partition={partition}",) if partition else ()
