"""`cockpit explain`, `starts` and `predict`: why jobs wait, when they start, and what more workers would give."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import Form, add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import current_user
from cockpit.headless.verbs.submit import placed, read_files
from cockpit.model.capabilities import Ability
from cockpit.model.forecast import Outlook
from cockpit.model.jobdetail import JobDetail
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.folding import id_text
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT

if TYPE_CHECKING:
    from cockpit.model.forecast import ExpectedStart
    from cockpit.model.ids import JobId, JobRef
    from cockpit.model.spec import JobSpec
    from cockpit.present.columns import TableView


NO_WAIT = "It did not wait."


def explain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="a queued job, or a running elastic one")
    parser.add_argument(
        "--past", action="store_true", help="of jobs that have started or ended: where their waiting time went"
    )
    add_output_options(parser, select=False)


async def run_explain(call: Call) -> int:
    from cockpit.present.tables.outlook import EXPLAIN as EXPLAIN_TABLE

    if call.args.past:
        return await _run_past(call)
    answers = [await _explanation(call, each) for each in call.args.jobs]
    outlooks = [each for each in answers if isinstance(each, Outlook)]
    running = [each for each in answers if isinstance(each, JobDetail)]
    # A table has the columns of one kind of row.
    if outlooks and running and not _is_text(call):
        message = "Some of these jobs wait and others run; name them in two commands for data about each kind."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    if outlooks:
        print_outlooks(call, EXPLAIN_TABLE, outlooks)
    if running:
        _print_running(call, running)
    return ExitCode.OK


async def _run_past(call: Call) -> int:
    """Print where the waiting time of each job went."""
    from cockpit.present.spans import plain
    from cockpit.present.waits.lines import wait_lines
    from cockpit.present.waits.report import wait_report

    # All jobs, since it is those that started meanwhile and may have ended that were ahead.
    rows = await call.backend.jobs(ended=True)
    now = call.streams.now()
    details = [await call.backend.job(each.job, task=each.task) for each in call.args.jobs]
    reports = [wait_report(each, now, rows) for each in details]
    context = call.context()
    if not _is_text(call):
        from cockpit.present.tables.waits import WAITS

        write_rows(WAITS, reports, call.args, context, call.streams)
        return ExitCode.OK
    by_id = {row.id: row for row in rows}
    for each in reports:
        call.streams.line(f"{id_text(each.detail.row)} {safe(each.detail.row.name)} · {safe(each.detail.row.user)}")
        lines = wait_lines(each, context, call.streams.columns or 80, by_id.get, letters=True)
        call.streams.lines([*map(plain, lines)] or [f"{INDENT}{NO_WAIT}"])
    return ExitCode.OK


async def _explanation(call: Call, job: JobRef) -> Outlook | JobDetail:
    """Return the outlook of a queued job, or the details of an elastic one that runs."""
    try:
        return await call.backend.explain(job.job, task=job.task)
    except RequestRefused as no:
        if no.refusal.kind is not RefusalKind.CONFLICT:
            raise
        detail = await call.backend.job(job.job, task=job.task)
        if detail.training is None or not detail.row.holds:
            raise
        return detail


def _print_running(call: Call, details: Sequence[JobDetail]) -> None:
    from cockpit.present.tables.job import EXPLAIN_RUNNING
    from cockpit.present.training import growth_lines

    if _is_text(call):
        for each in details:
            call.streams.lines(growth_lines(each, call.context()))
    else:
        write_rows(EXPLAIN_RUNNING, details, call.args, call.context(), call.streams)


def _is_text(call: Call) -> bool:
    return bool(call.args.output == Form.TABLE and not call.args.columns)


def print_outlooks(call: Call, table: TableView, outlooks: Sequence[Outlook]) -> None:
    """Print forecasts as a page or as data."""
    if not _is_text(call):
        write_rows(table, outlooks, call.args, call.context(), call.streams)
        return
    from cockpit.present.outlook import outlook_lines
    from cockpit.present.spans import plain

    for each in outlooks:
        call.streams.lines(map(plain, outlook_lines(each, call.context())))


EXPLAIN = Verb(
    explain_arguments,
    run_explain,
    (
        "cockpit explain 4711",
        "cockpit explain --past 4711",
        "cockpit explain 4711 -o json | jq '.rows[0].what_ifs'",
    ),
)


AT_ONCE = 1_000
"""The number of starts in one answer."""


async def run_starts(call: Call) -> int:
    from cockpit.present.tables.forecast import STARTS as STARTS_TABLE

    user = await current_user(call)
    queued = [row for row in await call.backend.jobs() if row.queued]
    ids = [row.id for row in queued]
    known: dict[JobId, ExpectedStart] = {}
    # In pieces, since one answer is limited.
    for first in range(0, len(ids), AT_ONCE):
        known |= {each.job: each for each in await call.backend.starts(ids[first : first + AT_ONCE])}
    at = {job: each.at for job, each in known.items() if each.at is not None}
    # Jobs without a known start are last, in the order of the queue.
    soonest = sorted(queued, key=lambda row: (row.id not in at, at.get(row.id, 0)))
    forecasts = {job: each.forecast for job, each in known.items() if job in at}
    failures = {job: each.failure for job, each in known.items() if each.failure}
    context = call.context(user=user, forecasts=forecasts, failures=failures)
    write_rows(STARTS_TABLE, soonest, call.args, context, call.streams)
    call.tell_of_silent_clusters()
    return ExitCode.OK


STARTS = Verb(
    add_output_options,
    run_starts,
    ("cockpit starts", "cockpit starts --filter user:me", "cockpit starts -o json | jq '.rows[0].starts_at'"),
)


def predict_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML, JSON, or JSON Lines with one job a line; - is stdin"
    )
    add_output_options(parser, select=False)


async def run_predict(call: Call) -> int:
    from cockpit.present.tables.outlook import PREDICT as PREDICT_TABLE

    specs, places = read_files(call)
    try:
        outlooks = await call.backend.predict(specs)
    except RequestRefused as no:
        # The refusal numbers the jobs of the request; the user knows them by file.
        raise RequestRefused(placed(no.refusal, places)) from no
    if call.backend.capabilities.has(Ability.SCRIPTS):
        _say_default_memory(call, specs, places)
    print_outlooks(call, PREDICT_TABLE, outlooks)
    return ExitCode.OK


def _say_default_memory(call: Call, specs: Sequence[JobSpec], places: Sequence[str]) -> None:
    """Say of batch scripts that name no memory how much their jobs get, which decides where they fit."""
    from cockpit.formats.foreign.sbatch_options import MEMORY, script_options

    for spec, place in zip(specs, places, strict=True):
        if spec.script is not None and MEMORY.isdisjoint(script_options(spec.script.text)):
            call.streams.say(
                f"{safe(place)}: names no memory, so it gets the cluster's default, or all memory of its nodes; "
                "--mem=4G asks for 4G"
            )


PREDICT = Verb(
    predict_arguments,
    run_predict,
    ("cockpit predict job.yaml", "cockpit predict job.yaml -o json | jq -r '.rows[0].likely_at'"),
)
