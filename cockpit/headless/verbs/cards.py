"""`cockpit cards`: every card and slice, once or again and again."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, write_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import asker
from cockpit.model.node import NodeState
from cockpit.present.card_rows import CardRow, card_rows
from cockpit.present.stranded import requests_in_sight
from cockpit.present.tables.cards import CARDS as TABLE


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also cards of nodes that are drained or down")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each change, until interrupted")
    add_output_options(parser)


async def run(call: Call) -> int:
    user = await asker(call)
    if call.args.watch:
        from cockpit.headless.watch import watch_rows

        await watch_rows(call, TABLE, lambda: _rows(call), _place, user=user)
    else:
        write_rows(TABLE, await _rows(call), call.args, call.context(user=user), call.streams)
    return ExitCode.OK


async def _rows(call: Call) -> list[CardRow]:
    requests = requests_in_sight(await call.backend.jobs(ended=False))
    nodes = await call.backend.nodes()
    shown = [row for row in nodes if call.args.all or row.node.state is NodeState.UP]
    return [part for row in shown for part in card_rows(row, requests)]


def _place(row: CardRow) -> dict[str, object]:
    """What tells it from others; cards and slices count from 1, as people see them."""
    return {"node": row.node.name, "card": row.card.index + 1, "slice": None if row.slot is None else row.slot + 1}


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
