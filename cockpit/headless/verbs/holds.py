"""`cockpit holds`: lists held containers; `extend` extends a debug hold, `end` ends it and removes the container."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, reference, seconds
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.headless.trying import try_each
from cockpit.model.ids import JobRef
from cockpit.present.moments import clock
from cockpit.present.references import job_text
from cockpit.present.tables.holds import HOLDS as TABLE


async def run_list(call: Call) -> int:
    return await list_rows(call, TABLE, call.backend.holds)


def extend_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument("--by", type=seconds, required=True, metavar="TIME", help="how much longer, such as 2h")


async def run_extend(call: Call) -> int:
    job = await call.job_id(call.args.job)
    until = await call.backend.extend_hold(job, seconds=call.args.by)
    call.streams.line(f"job {job} is held until {clock(until, call.streams.now(), call.streams.zone)}")
    return ExitCode.OK


def end_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="the jobs")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


async def run_end(call: Call) -> int:
    ids = ", ".join(map(job_text, call.args.jobs))
    must_ask = call.streams.answers and not call.args.yes
    if must_ask and not call.streams.confirmed(f"End the debug hold of {ids} and remove the files in its containers?"):
        return ExitCode.DECLINED

    async def end(ref: JobRef) -> None:
        await call.backend.end_hold(await call.job_id(ref))

    return await try_each(call, call.args.jobs, end, "ended the debug hold of", job_text)


HOLDS = Verb(
    add_list_options, run_list, ("cockpit holds", "cockpit holds --filter 'left<30m' -o json", "cockpit holds --watch")
)
EXTEND = Verb(extend_arguments, run_extend, ("cockpit holds extend 4715 --by 2h",))
END = Verb(end_arguments, run_end, ("cockpit holds end 4715",))
