"""`cockpit starts`: the queued jobs, and when each likely starts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import asker

if TYPE_CHECKING:
    from cockpit.model.forecast import ExpectedStart
    from cockpit.model.ids import JobId

AT_ONCE = 1_000
"""The number of starts in one answer."""


def arguments(parser: ArgumentParser) -> None:
    add_output_options(parser)


async def run(call: Call) -> int:
    from cockpit.present.tables.starts import STARTS as TABLE

    user = await asker(call)
    queued = [row for row in await call.backend.jobs() if row.queued]
    ids = [row.id for row in queued]
    known: dict[JobId, ExpectedStart] = {}
    for first in range(0, len(ids), AT_ONCE):
        known |= {each.job: each for each in await call.backend.starts(ids[first : first + AT_ONCE])}
    at = {job: each.at for job, each in known.items() if each.at is not None}
    soonest = sorted(queued, key=lambda row: (row.id not in at, at.get(row.id, 0)))
    forecasts = {job: each.forecast for job, each in known.items() if job in at}
    failures = {job: each.failure for job, each in known.items() if each.failure}
    context = call.context(user=user, forecasts=forecasts, failures=failures)
    write_rows(TABLE, soonest, call.args, context, call.streams)
    return ExitCode.OK


STARTS = Verb(
    arguments,
    run,
    ("cockpit starts", "cockpit starts --filter user:me", "cockpit starts -o json | jq '.rows[0].starts_at'"),
)
