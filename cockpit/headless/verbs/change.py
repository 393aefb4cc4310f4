"""`cockpit cancel`, `hold`, `release`, `delete`: the acts that change what becomes of a job."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Awaitable, Callable

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.headless.services import Call
from cockpit.model.ids import JobId
from cockpit.present.refusals import refusal_text
from cockpit.present.units import counted


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="the jobs")


def cancel_arguments(parser: ArgumentParser) -> None:
    arguments(parser)
    parser.add_argument("--now", action="store_true", help="kill at once, without the grace period")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_cancel(call: Call) -> int:
    ids = [ref.job for ref in call.args.jobs]
    if call.streams.answers and not call.args.yes and not call.streams.confirmed(_question(ids, "Cancel")):
        return ExitCode.DECLINED
    grace = 0 if call.args.now else None
    return await each(call, lambda job: call.backend.cancel(job, grace_seconds=grace), "cancelled")


def delete_arguments(parser: ArgumentParser) -> None:
    arguments(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_delete(call: Call) -> int:
    """What is kept of them goes; accounting remembers them."""
    ids = [ref.job for ref in call.args.jobs]
    if call.streams.answers and not call.args.yes and not call.streams.confirmed(_question(ids, "Delete")):
        return ExitCode.DECLINED
    return await each(call, call.backend.delete, "deleted")


async def run_hold(call: Call) -> int:
    return await each(call, call.backend.hold, "held")


async def run_release(call: Call) -> int:
    return await each(call, call.backend.release, "released")


async def each(call: Call, act: Callable[[JobId], Awaitable[None]], done: str) -> int:
    """Every job is tried; each refusal is told, and the first decides the exit code."""
    code: int = ExitCode.OK
    for ref in call.args.jobs:
        try:
            await act(ref.job)
        except RequestRefused as refused:
            call.streams.say(refusal_text(refused.refusal, call.streams.now(), call.streams.zone))
            code = code or exit_code_of(refused)
        else:
            call.streams.line(f"{done} {ref.job}")
    return code


def _question(ids: list[JobId], verb: str) -> str:
    named = str(ids[0]) if len(ids) == 1 else f"{counted(len(ids), 'job')} ({', '.join(map(str, ids))})"
    return f"{verb} {named}?"


CANCEL = Verb(cancel_arguments, run_cancel, ("cockpit cancel 4711", "cockpit cancel 4711 4712 --now --yes"))
HOLD = Verb(arguments, run_hold, ("cockpit hold 4720",))
RELEASE = Verb(arguments, run_release, ("cockpit release 4720 4721",))
DELETE = Verb(delete_arguments, run_delete, ("cockpit delete 4715", "cockpit delete 4715 4716 --yes"))
