"""`cockpit cards`: every card and slice, once or again and again."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.jobs import asker
from cockpit.model.node import NodeState
from cockpit.present.stranded import known_requests
from cockpit.present.tables.cards import CARD_MODELS as MODELS
from cockpit.present.tables.cards import CARDS as TABLE
from cockpit.present.tables.cards import CardRow, ModelRow, card_rows, model_rows


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also cards of nodes that are drained or down")
    parser.add_argument("--models", action="store_true", help="the models instead: cards, free ones, and queued for")
    add_list_options(parser)


async def run(call: Call) -> int:
    if call.args.models:
        return await list_rows(call, MODELS, lambda: _models(call))
    return await list_rows(call, TABLE, lambda: _rows(call), user=await asker(call))


async def _rows(call: Call) -> list[CardRow]:
    requests = known_requests(await call.backend.jobs(ended=False))
    nodes = await call.backend.nodes()
    shown = [row for row in nodes if call.args.all or row.node.state is NodeState.UP]
    return [part for row in shown for part in card_rows(row, requests)]


async def _models(call: Call) -> list[ModelRow]:
    return model_rows(await call.backend.nodes(), await call.backend.overview())


CARDS = Verb(
    arguments,
    run,
    (
        "cockpit cards",
        "cockpit cards --models",
        "cockpit cards --filter 'model:A100 state:free,stranded'",
        "cockpit cards --filter user:me --sort node,card -o json",
        "cockpit cards --watch --filter state:stranded",
    ),
)
