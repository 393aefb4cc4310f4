"""`cockpit usage`: what a job's replicas really use, once or as it changes."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.present.measured import measured
from cockpit.present.tables.usage import USAGE as TABLE

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.present.measured import MeasuredUse

LOOK_SECONDS = 2.0


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each change, until it has ended")
    add_output_options(parser)


async def run(call: Call) -> int:
    job = await call.job_id(call.args.job)
    if call.args.watch:
        await _watch(call, job)
    else:
        write_rows(TABLE, await _rows(call, job), call.args, call.context(), call.streams)
    return ExitCode.OK


async def _watch(call: Call, job: JobId) -> None:
    from cockpit.headless.watch import PrintedRows

    watched: PrintedRows[MeasuredUse] = PrintedRows(call, TABLE)
    ended = False
    while not ended:
        ended = await call.backend.wait(job, timeout_seconds=LOOK_SECONDS) is not None
        watched.tell(await _rows(call, job))


async def _rows(call: Call, job: JobId) -> list[MeasuredUse]:
    detail = await call.backend.job(job)
    return measured(detail, call.streams.now())


USAGE = Verb(
    arguments,
    run,
    ("cockpit usage 4711", "cockpit usage 4711 -o json", "cockpit usage 4711 --watch --columns rank,cpus_busy,memory"),
)
