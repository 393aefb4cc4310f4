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
    "replicas": "job --replicas",
    "block-list": "job --block-list",
    "explain-past": "explain --past",
    "accounting-sums": "accounting --by user",
    "launch-script": "launch --dry-run, of a Slurm cluster,",
}
"""Tables that are not called as the command that writes them."""


def command_of(table: str) -> str:
    """Return the name of the command that prints a table."""
    return _OTHERWISE.get(table) or table.removesuffix("-details").replace("-", " ")


def table_of(verb: str) -> TableView | None:
    """Return the table that a verb prints; None where it prints no list."""
    from cockpit.present.tables.all import TABLES

    written = {command_of(name): table for name, table in TABLES.items()}
    # Verbs of a noun (`accounts add`) share the noun's table where they have none of their own.
    return written.get(verb) or written.get(verb.partition(" ")[0])


def add_list_options(parser: ArgumentParser) -> None:
    """Add `--watch`, and the options by which rows are chosen and written."""
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
    """Print the rows that `fetch` returns, with `--watch` again whenever something has happened.

    `context`: what cells need to know besides the present time.
    """
    if call.args.watch:
        from cockpit.headless.watch import watch_rows

        await watch_rows(call, table, fetch, **context)
    else:
        write_rows(table, await fetch(), call.args, call.context(**context), call.streams)
        if table.name != "clusters":  # whose rows say it themselves
            call.tell_of_silent_clusters()
    return ExitCode.OK
