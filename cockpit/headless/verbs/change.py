"""`cockpit cancel`, `hold`, `suspend`, `requeue`, `delete` … change jobs; `holds` lists and changes debug holds."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Awaitable, Callable, Sequence

from cockpit.formats.typed_values import (
    LIMIT_EXPECTED,
    PRIORITY_EXPECTED,
    limit_text,
    priority_text,
    read_limit,
    read_priority,
)
from cockpit.headless.arguments import Verb, field, reference, seconds
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call, try_each
from cockpit.model.asking import WantedLimit, WantedPriority
from cockpit.model.capabilities import Ability
from cockpit.model.directives import MoveToTop, SendSignal, SignalTarget, UpdateJob
from cockpit.model.ids import JobRef, NodeName
from cockpit.present.moments import clock
from cockpit.present.references import job_text
from cockpit.present.safe import safe
from cockpit.present.tables.holds import HOLDS as HOLDS_TABLE
from cockpit.present.units import counted


def change_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "jobs",
        type=reference,
        nargs="+",
        metavar="ID",
        help="jobs, tasks such as 4711_3, or arrays with all their tasks",
    )
    # Each job is a change of its own, which a repetition can answer one by one.
    parser.set_defaults(changes_each_job=True)


def cancel_arguments(parser: ArgumentParser) -> None:
    change_arguments(parser)
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--grace", type=seconds, metavar="TIME", help="kill after so long instead, such as 5m")
    # The same as a grace period of 0.
    how_long.add_argument("--now", action="store_const", dest="grace", const=0, help="kill at once")
    how_long.add_argument("--signal", metavar="NAME", help="only send this signal: USR1, INT, 10; on a Slurm cluster")
    parser.add_argument(
        "--to",
        type=SignalTarget,
        choices=list(SignalTarget),
        default=SignalTarget.ALL,
        metavar="WHOM",
        help=f"whom the signal is for: {', '.join(SignalTarget)}",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_cancel(call: Call) -> int:
    if call.declines(_question(call.args.jobs, "Cancel")):
        return ExitCode.DECLINED
    if (name := call.args.signal) is not None:
        reach = call.args.to

        async def send(ref: JobRef) -> None:
            await call.backend.direct(SendSignal(ref.job, name, reach, ref.task))

        return await each(call, send, f"sent {safe(name)} to")
    grace = call.args.grace
    return await each(call, lambda ref: call.backend.cancel(ref.job, task=ref.task, grace_seconds=grace), "cancelled")


def delete_arguments(parser: ArgumentParser) -> None:
    change_arguments(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _on_each(operation: str, done: str, asks: str = "") -> Callable[[Call], Awaitable[int]]:
    """Return the function that applies an operation of the cluster to each job; `asks`: the verb of the question before
    it."""

    async def run(call: Call) -> int:
        if asks and call.declines(_question(call.args.jobs, asks)):
            return ExitCode.DECLINED
        act = getattr(call.backend, operation)
        return await each(call, lambda ref: act(ref.job, task=ref.task), done)

    return run


async def run_suspend(call: Call) -> int:
    """Suspend jobs, and say what is lost with it where it ends their processes."""
    code = await each(call, lambda ref: call.backend.suspend(ref.job, task=ref.task), "suspended")
    lost = call.backend.capabilities_for(ref.job for ref in call.args.jobs).why_not(Ability.PAUSE)
    if lost and code == ExitCode.OK:
        call.streams.say(lost)
    return code


def priority_arguments(parser: ArgumentParser) -> None:
    change_arguments(parser)
    parser.add_argument(
        "priority",
        type=_priority,
        metavar="PRIORITY",
        help="normal or urgent; for administrators also very-urgent, a number in the place of the computed priority, "
        "or +N or -N beside it (the site factor)",
    )


def _priority(text: str) -> WantedPriority:
    if (wanted := read_priority(text)) is None:
        raise ArgumentTypeError(f"{safe(text)} is no priority; write {PRIORITY_EXPECTED}")
    return wanted


async def run_set_priority(call: Call) -> int:
    """Set priorities: by a word, by a number that replaces the computed priority, or by a site factor beside it."""
    wanted = call.args.priority
    done = f"priority {priority_text(wanted)} for"
    return await each(call, lambda ref: call.backend.set_priority(ref.job, wanted, task=ref.task), done)


def limit_arguments(parser: ArgumentParser) -> None:
    change_arguments(parser)
    parser.add_argument("limit", type=_limit, metavar="TIME", help=LIMIT_EXPECTED)


def _limit(text: str) -> WantedLimit:
    if (wanted := read_limit(text.strip())) is None:
        raise ArgumentTypeError(f"{safe(text)} is no time limit; write {LIMIT_EXPECTED}")
    return wanted


async def run_set_time_limit(call: Call) -> int:
    """Change time limits; those of running jobs count from their start, and their containers are not affected."""
    wanted = call.args.limit
    done = f"time limit {limit_text(wanted)} for"
    return await each(call, lambda ref: call.backend.set_time_limit(ref.job, wanted, task=ref.task), done)


def update_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job, or a task such as 4711_3")
    parser.add_argument("fields", nargs="+", type=field, metavar="FIELD=VALUE", help="by Slurm's own names")


async def run_update(call: Call) -> int:
    """Change the fields that the cluster lets a user change; it says itself why it refuses others."""
    ref = call.args.job
    await call.backend.direct(UpdateJob(ref.job, dict(call.args.fields), ref.task))
    call.streams.line(f"changed {', '.join(safe(name) for name, _ in call.args.fields)} of {job_text(ref)}")
    return ExitCode.OK


async def run_top(call: Call) -> int:
    """Move jobs before all other jobs of their owner."""
    # All in one request, since the order among them counts.
    await call.backend.direct(MoveToTop(tuple(map(job_text, call.args.jobs))))
    call.streams.line(f"moved {', '.join(map(job_text, call.args.jobs))} to the top")
    return ExitCode.OK


async def each(call: Call, act: Callable[[JobRef], Awaitable[None]], done: str) -> int:
    return await try_each(call, call.args.jobs, act, done, job_text)


def _question(refs: Sequence[JobRef], verb: str) -> str:
    ids = [job_text(ref) for ref in refs]
    named = ids[0] if len(ids) == 1 else f"{counted(len(ids), 'job')} ({', '.join(ids)})"
    return f"{verb} {named}?"


CANCEL = Verb(
    cancel_arguments,
    run_cancel,
    (
        "cockpit cancel 4711",
        "cockpit cancel 4711 --grace 5m",
        "cockpit cancel 4711_3 4712 --now --yes",
        "cockpit cancel 4711 --signal USR1 --to script",
    ),
)
HOLD = Verb(change_arguments, _on_each("hold", "held"), ("cockpit hold 4720",))
RELEASE = Verb(change_arguments, _on_each("release", "released"), ("cockpit release 4720 4721",))
SUSPEND = Verb(change_arguments, run_suspend, ("cockpit suspend 4711",))
RESUME = Verb(change_arguments, _on_each("resume", "resumed"), ("cockpit resume 4711",))
REQUEUE = Verb(
    delete_arguments,
    _on_each("requeue", "requeued", "Requeue"),
    ("cockpit requeue 4711", "cockpit requeue 4711_3 4712 --yes"),
)
SET_PRIORITY = Verb(
    priority_arguments,
    run_set_priority,
    (
        "cockpit set-priority 4720 urgent",
        "cockpit set-priority 4720 4721_3 normal",
        "cockpit set-priority 4720 90000",
        "cockpit set-priority 4720 +500",
    ),
)
SET_TIME_LIMIT = Verb(
    limit_arguments,
    run_set_time_limit,
    ("cockpit set-time-limit 4711 6h", "cockpit set-time-limit 4711 4712_3 +2h", "cockpit set-time-limit 4711 -30m"),
)
UPDATE = Verb(
    update_arguments,
    run_update,
    ("cockpit update 4720 Features=nvlink Nice=50", "cockpit update 4720_3 ExcNodeList=n[3-5] 'Comment=see 4711'"),
)
TOP = Verb(change_arguments, run_top, ("cockpit top 4720",))
DELETE = Verb(
    delete_arguments, _on_each("delete", "deleted", "Delete"), ("cockpit delete 4715", "cockpit delete 4715 4716 --yes")
)


def extend_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.set_defaults(changes_its_job=True)
    parser.add_argument("--by", type=seconds, required=True, metavar="TIME", help="how much longer, such as 2h")


async def run_extend(call: Call) -> int:
    job = await call.job_id(call.args.job)
    until = await call.backend.extend_hold(job, seconds=call.args.by)
    call.streams.line(f"job {job} is held until {clock(until, call.streams.now(), call.streams.zone)}")
    return ExitCode.OK


def end_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="the jobs")
    parser.set_defaults(changes_each_job=True)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_end(call: Call) -> int:
    ids = ", ".join(map(job_text, call.args.jobs))
    if call.declines(f"End the debug hold of {ids} and remove the files in its containers?"):
        return ExitCode.DECLINED

    async def end(ref: JobRef) -> None:
        await call.backend.end_hold(await call.job_id(ref))

    return await try_each(call, call.args.jobs, end, "ended the debug hold of", job_text)


def unblock_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the elastic job")
    parser.set_defaults(changes_its_job=True)
    parser.add_argument("node", metavar="NODE", help="the node, as in `cockpit job ID --block-list`")


async def run_unblock(call: Call) -> int:
    job = await call.job_id(call.args.job)
    await call.backend.unblock(job, NodeName(call.args.node))
    call.streams.line(f"job {job} may have workers on {safe(call.args.node)} again")
    return ExitCode.OK


UNBLOCK = Verb(unblock_arguments, run_unblock, ("cockpit unblock 4711 n07",))
HOLDS = Verb(
    add_list_options,
    lambda call: list_rows(call, HOLDS_TABLE, call.backend.holds),
    ("cockpit holds", "cockpit holds --filter 'left<30m' -o json", "cockpit holds --watch"),
)
EXTEND_HOLD = Verb(extend_arguments, run_extend, ("cockpit holds extend 4715 --by 2h",))
END_HOLD = Verb(end_arguments, run_end, ("cockpit holds end 4715",))
