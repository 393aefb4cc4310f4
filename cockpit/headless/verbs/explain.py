"""`cockpit explain`: why queued jobs wait, when they start, and what would start them sooner."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import Form, add_output_options, write_rows
from cockpit.headless.services import Call

if TYPE_CHECKING:
    from cockpit.model.forecast import Outlook
    from cockpit.present.columns import Table


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("jobs", type=reference, nargs="+", metavar="ID", help="a queued job")
    add_output_options(parser, select=False)


async def run(call: Call) -> int:
    from cockpit.present.tables.outlook import EXPLAIN as TABLE

    outlooks = [await call.backend.explain(each.job, task=each.task) for each in call.args.jobs]
    tell(call, TABLE, outlooks)
    return ExitCode.OK


def tell(call: Call, table: Table, outlooks: Sequence[Outlook]) -> None:
    """Print forecasts as a page or as data."""
    if call.args.output != Form.TABLE or call.args.columns:
        write_rows(table, outlooks, call.args, call.context(), call.streams)
        return
    from cockpit.present.outlook import outlook_lines
    from cockpit.present.spans import plain

    for each in outlooks:
        for line in outlook_lines(each, call.context()):
            call.streams.line(plain(line))


EXPLAIN = Verb(arguments, run, ("cockpit explain 4711", "cockpit explain 4711 -o json | jq '.rows[0].what_ifs'"))
