"""`cockpit trials`: what the trials of a sweep were given, and how far they are."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.model.refusal import Refusal, RefusalKind


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the sweep, or one of its trials")
    add_output_options(parser)


async def run(call: Call) -> int:
    from cockpit.present.tables.trials import TRIALS as TABLE
    from cockpit.present.tables.trials import trials_of

    ref = call.args.job
    job = (await call.backend.job(ref.job, task=ref.task)).job
    if job.spec.sweep is None or job.array is None:
        raise RequestRefused(Refusal(RefusalKind.INVALID, f"Job {job.id} is no sweep; submit one with `sweep:`."))
    array = job.array.array
    rows = [row for row in await call.backend.jobs(ended=True) if row.array is not None and row.array.array == array]
    write_rows(TABLE, trials_of(job.spec.sweep, rows), call.args, call.context(), call.streams)
    return ExitCode.OK


TRIALS = Verb(arguments, run, ("cockpit trials 4711", "cockpit trials 4711 -o json | jq '.rows[].parameters'"))
