"""`cockpit job`, `trials`, `usage` and `tensorboard`: show one job, its trials, what it uses, and its metrics."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb, add_reveal_option, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, is_page, write_rows
from cockpit.headless.services import Call
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.measured import measured
from cockpit.present.tables.usage import USAGE as USAGE_TABLE

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.present.measured import MeasuredUse


def job_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    lists = parser.add_mutually_exclusive_group()
    lists.add_argument(
        "--replicas", action="store_true", help="its replicas: whether they run, restarts, time until the kill"
    )
    lists.add_argument(
        "--block-list",
        action="store_true",
        help="the nodes on which this job places no worker for now, and why",
    )
    add_output_options(parser, select=False)
    add_reveal_option(parser)


async def run_job(call: Call) -> int:
    detail = await call.backend.job(call.args.job.job, task=call.args.job.task)
    if call.args.block_list:
        from cockpit.present.tables.block_list import BLOCK_LIST, block_list

        write_rows(BLOCK_LIST, block_list(detail.job), call.args, call.context(), call.streams)
        return ExitCode.OK
    if call.args.replicas:
        from cockpit.present.tables.replicas import REPLICAS, replica_rows

        write_rows(REPLICAS, list(replica_rows(detail.job)), call.args, call.context(), call.streams)
        return ExitCode.OK
    # Only of queued jobs: a prediction takes the engine some time.
    known = await call.backend.starts([detail.row.id]) if detail.row.queued else []
    context = call.context(forecasts={each.job: each.forecast for each in known})
    if is_page(call.args):
        from cockpit.present.job.page import job_page

        call.streams.lines(job_page(detail, context))
    else:
        from cockpit.present.tables.job import JOB as JOB_TABLE

        write_rows(JOB_TABLE, [detail], call.args, context, call.streams)
    return ExitCode.OK


JOB = Verb(
    job_arguments,
    run_job,
    ("cockpit job 4711", "cockpit job 4711 -o json", "cockpit job 4711 --replicas", "cockpit job 4711 --block-list"),
)


def trials_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the sweep, or one of its trials")
    add_output_options(parser)


async def run_trials(call: Call) -> int:
    from cockpit.present.tables.trials import TRIALS as TRIALS_TABLE
    from cockpit.present.tables.trials import trials_of

    ref = call.args.job
    job = (await call.backend.job(ref.job, task=ref.task)).job
    if job.spec.sweep is None or job.array is None:
        raise RequestRefused(Refusal(RefusalKind.INVALID, f"Job {job.id} is no sweep; submit one with `sweep:`."))
    array = job.array.array
    # Ended trials too, which is most of a sweep.
    rows = [row for row in await call.backend.jobs(ended=True) if row.array is not None and row.array.array == array]
    write_rows(TRIALS_TABLE, trials_of(job.spec.sweep, rows), call.args, call.context(), call.streams)
    return ExitCode.OK


TRIALS = Verb(
    trials_arguments, run_trials, ("cockpit trials 4711", "cockpit trials 4711 -o json | jq '.rows[].parameters'")
)


LOOK_SECONDS = 2.0
"""Interval between two looks at the usage with `--watch`."""


def usage_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each change, until it has ended")
    add_output_options(parser)


async def run_usage(call: Call) -> int:
    job = await call.job_id(call.args.job)
    if call.args.watch:
        await _watch_usage(call, job)
    else:
        write_rows(USAGE_TABLE, await _usage_rows(call, job), call.args, call.context(), call.streams)
    return ExitCode.OK


async def _watch_usage(call: Call, job: JobId) -> None:
    from cockpit.headless.watch import PrintedRows

    watched: PrintedRows[MeasuredUse] = PrintedRows(call, USAGE_TABLE)
    ended = False
    while not ended:
        # Waiting for the end is the pause between two readings, so that the last one follows the end at once.
        ended = await call.backend.wait(job, timeout_seconds=LOOK_SECONDS) is not None
        watched.tell(await _usage_rows(call, job))


async def _usage_rows(call: Call, job: JobId) -> list[MeasuredUse]:
    detail = await call.backend.job(job)
    return measured(detail, call.streams.now())


USAGE = Verb(
    usage_arguments,
    run_usage,
    ("cockpit usage 4711", "cockpit usage 4711 -o json", "cockpit usage 4711 --watch --columns rank,cpus_busy,memory"),
)


def tensorboard_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the batch; of another job its own output folder")
    parser.add_argument("--stop", action="store_true", help="end the one that was started")


async def run_tensorboard(call: Call) -> int:
    """Print the address of a TensorBoard, and run it until it is stopped."""
    from cockpit.config.boards import board_name, board_of, runs_of

    detail = await call.backend.job(call.args.job.job, task=call.args.job.task)
    board = board_of(board_name(detail), os.environ)
    if call.args.stop:
        call.streams.say("TensorBoard is stopped" if board.stop() else "no TensorBoard of it runs")
        return ExitCode.OK
    call.streams.line(board.start(runs_of(detail)))
    call.streams.hint(f"`cockpit tensorboard {detail.row.id} --stop` ends it; only this machine reaches it.")
    return ExitCode.OK


TENSORBOARD = Verb(
    tensorboard_arguments, run_tensorboard, ("cockpit tensorboard 4711", "cockpit tensorboard 4711 --stop")
)
