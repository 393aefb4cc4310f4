"""`cockpit job`: everything about one job, as a page to read or as data."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, is_page, write_rows
from cockpit.headless.services import Call


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    add_output_options(parser, select=False)


async def run(call: Call) -> int:
    detail = await call.backend.job(call.args.job.job, task=call.args.job.task)
    known = await call.backend.starts([detail.row.id]) if detail.row.queued else []
    context = call.context(forecasts={each.job: each.forecast for each in known})
    if is_page(call.args):
        from cockpit.present.job.page import job_page

        for line in job_page(detail, context):
            call.streams.line(line)
    else:
        from cockpit.present.tables.job import JOB as TABLE

        write_rows(TABLE, [detail], call.args, context, call.streams)
    return ExitCode.OK


JOB = Verb(arguments, run, ("cockpit job 4711", "cockpit job 4711 -o json"))
