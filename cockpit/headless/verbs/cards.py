"""`cockpit cards`: every card and slice, once or again and again."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, chosen_columns, chosen_rows, write_rows
from cockpit.headless.records import JSON_VERSION, encoded_lines, record_type, records
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import asker
from cockpit.model.node import NodeState
from cockpit.present.card_rows import CardRow, card_rows
from cockpit.present.stranded import requests_in_sight
from cockpit.present.tables.cards import CARDS as TABLE

Place = tuple[str, int, int | None]
"""Node, card and slot of a row."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also cards of nodes that are drained or down")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each change, until interrupted")
    add_output_options(parser)


async def run(call: Call) -> int:
    user = await asker(call)
    if call.args.watch:
        await _watch(call, user)
    else:
        write_rows(TABLE, await _rows(call), call.args, call.context(user=user), call.streams)
    return ExitCode.OK


async def _rows(call: Call) -> list[CardRow]:
    requests = requests_in_sight(await call.backend.jobs(ended=False))
    nodes = await call.backend.nodes()
    shown = [row for row in nodes if call.args.all or row.node.state is NodeState.UP]
    return [part for row in shown for part in card_rows(row, requests)]


async def _watch(call: Call, user: str) -> None:
    """`{"version": 1, "change": "row", "row": {…}}`, and `{"version": 1, "change": "gone", "node": …, "card": …,
    "slice": …}` for a slice that is no longer there or passes the filter no more."""
    columns = chosen_columns(TABLE, call.args) if call.args.columns else TABLE.columns
    record = record_type(columns)
    shown: dict[Place, CardRow] = {}
    async for _ in call.backend.watch_jobs():
        context = call.context(user=user)
        rows = {_place(row): row for row in chosen_rows(TABLE, await _rows(call), call.args, context)}
        changed = [row for place, row in rows.items() if shown.get(place) != row]
        lines: list[object] = [
            {"version": JSON_VERSION, "change": "row", "row": row} for row in records(record, columns, changed, context)
        ]
        lines += [_gone(place) for place in shown if place not in rows]
        if lines:
            call.streams.write(encoded_lines(lines))
            call.streams.flush()
        shown = rows


def _place(row: CardRow) -> Place:
    return row.node.name, row.card.index, row.slot


def _gone(place: Place) -> dict[str, object]:
    node, card, slot = place
    return {
        "version": JSON_VERSION,
        "change": "gone",
        "node": node,
        "card": card + 1,
        "slice": None if slot is None else slot + 1,
    }


CARDS = Verb(
    arguments,
    run,
    (
        "cockpit cards",
        "cockpit cards --filter 'model:A100 state:free,stranded'",
        "cockpit cards --filter user:me --sort node,card -o json",
        "cockpit cards --watch --filter state:stranded",
    ),
)
