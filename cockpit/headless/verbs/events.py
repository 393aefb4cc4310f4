"""`cockpit events`: what happened, and who asked for it."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, count, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.model.capabilities import Ability
from cockpit.present.tables.events import EVENTS as TABLE


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, nargs="?", metavar="ID", help="only events of this job")
    parser.add_argument("-n", "--number", type=count, default=1000, metavar="N", help="the last so many (1000)")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each as it comes, until interrupted")
    add_output_options(parser)


async def run(call: Call) -> int:
    job = await call.job_id(call.args.job) if call.args.job else None
    if call.args.watch:
        from cockpit.headless.watch import watch_events

        await watch_events(call, job)
        return ExitCode.OK
    records = await call.backend.events(job=job, limit=call.args.number)
    write_rows(TABLE, records, call.args, call.context(), call.streams)
    if incomplete := call.backend.capabilities.why_not(Ability.EVERY_EVENT):
        call.streams.hint(incomplete)
    return ExitCode.OK


EVENTS = Verb(
    arguments, run, ("cockpit events -n 20", "cockpit events 4711", "cockpit events --watch --filter event:job_ended")
)
