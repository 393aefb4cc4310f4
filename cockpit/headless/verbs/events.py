"""`cockpit events`: what happened, and who asked for it."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, count, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.present.tables.events import EVENTS as TABLE


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, nargs="?", metavar="ID", help="only events of this job")
    parser.add_argument("-n", "--number", type=count, default=1000, metavar="N", help="the last so many (1000)")
    add_output_options(parser)


async def run(call: Call) -> int:
    job = await call.job_id(call.args.job) if call.args.job else None
    records = await call.backend.events(job=job, limit=call.args.number)
    write_rows(TABLE, records, call.args, call.context(), call.streams)
    return ExitCode.OK


EVENTS = Verb(
    arguments, run, ("cockpit events -n 20", "cockpit events 4711", "cockpit events --filter event:job_ended")
)
