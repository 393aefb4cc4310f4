"""`cockpit` without a verb: the cluster at a glance."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_page_options, list_rows
from cockpit.headless.output import is_page
from cockpit.headless.services import Call
from cockpit.present.tables.overview import OVERVIEW as TABLE
from cockpit.present.tables.overview import overview_lines

if TYPE_CHECKING:
    from cockpit.model.view import Overview


def arguments(parser: ArgumentParser) -> None:
    add_page_options(parser)


async def run(call: Call) -> int:
    if not is_page(call.args):
        return await list_rows(call, TABLE, lambda: _row(call))
    for line in overview_lines(await call.backend.overview(), await call.backend.nodes()):
        call.streams.line(line)
    return ExitCode.OK


async def _row(call: Call) -> list[Overview]:
    return [await call.backend.overview()]


OVERVIEW = Verb(arguments, run, ("cockpit", "cockpit -c lab-a", "cockpit overview --watch --columns running,queued"))
