"""Prints the list of a verb once, or follows it with `--watch`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.present.columns import TableView

Row = TypeVar("Row")
_OTHERWISE: Final = {
    "accounting-sums": "accounting --by user",
    "launch-script": "launch --dry-run, of a Slurm cluster,",
}
"""Tables that are not called as the command that writes them."""


def command_of(table: str) -> str:
    """The command that writes a table."""
    return _OTHERWISE.get(table) or table.removesuffix("-details").replace("-", " ")


def table_of(verb: str) -> TableView | None:
    """Return the table that a verb prints; None where it prints no list."""
    from cockpit.present.tables.all import TABLES

    written = {command_of(name): table for name, table in TABLES.items()}
    return written.get(verb) or written.get(verb.partition(" ")[0])


def add_list_options(parser: ArgumentParser) -> None:
    """`--watch`, and how the rows are chosen and written."""
    _add_watch(parser)
    add_output_options(parser)


def add_page_options(parser: ArgumentParser) -> None:
    """Add the options of a verb that shows a single thing as a page."""
    _add_watch(parser)
    add_output_options(parser, select=False)


def _add_watch(parser: ArgumentParser) -> None:
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each change, until interrupted")


async def list_rows(
    call: Call, table: TableView, fetch: Callable[[], Awaitable[Sequence[Row]]], **context: object
) -> ExitCode:
    """The rows that `fetch` gives now, or with `--watch` now and whenever something has happened. `context`: what
    their words depend on besides the moment."""
    if call.args.watch:
        from cockpit.headless.watch import watch_rows

        await watch_rows(call, table, fetch, **context)
    else:
        write_rows(table, await fetch(), call.args, call.context(**context), call.streams)
        if table.name != "clusters":  # whose rows say it themselves
            call.tell_of_silent_clusters()
    return ExitCode.OK
