"""`cockpit nodes` and `cards`: list nodes and their cards; drain nodes and resume them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cockpit.headless.arguments import UsageError, Verb, count, mebibytes, seconds
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call, try_each
from cockpit.headless.verbs.jobs import current_user
from cockpit.model.node import NodeState
from cockpit.model.resilience import RECLAIM_SECONDS
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.model.view import NodeRow
from cockpit.present.safe import safe
from cockpit.present.stranded import known_requests
from cockpit.present.tables.cards import CARD_MODELS as MODELS
from cockpit.present.tables.cards import CARDS as CARDS_TABLE
from cockpit.present.tables.cards import CardRow, ModelRow, card_rows, model_rows
from cockpit.present.tables.nodes import NODES as NODES_TABLE

TAKEN_BACK = "its provider takes it back"


def nodes_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also judge nodes that are drained or down")
    parser.add_argument("--up", action="store_true", help="only nodes in service: none that are drained or down")
    parser.add_argument("--cpus", type=count, metavar="N", help="judge against a spec with so many CPUs")
    parser.add_argument("--memory", type=mebibytes, metavar="M", help="… so much memory, such as 64G")
    parser.add_argument("--cards", metavar="K", help="… so many cards, or a part of one such as 0.5")
    parser.add_argument("--card-model", action="append", metavar="X", help="… cards of this model (again: or of that)")
    add_list_options(parser)


async def run_nodes(call: Call) -> int:
    chosen = chosen_spec(call.args)
    # Nodes out of service cannot take the spec that is asked about, unless the user wants to see them judged.
    in_service = call.args.up or (chosen is not None and not call.args.all)
    return await list_rows(call, NODES_TABLE, lambda: _rows(call, in_service=in_service), chosen=chosen)


async def _rows(call: Call, *, in_service: bool) -> list[NodeRow]:
    """Return all nodes, with drained ones, which users look for; or only those in service."""
    rows = await call.backend.nodes()
    return [row for row in rows if row.node.state is NodeState.UP or not in_service]


def chosen_spec(args: Namespace) -> NodeSpec | None:
    """Return the spec that the options describe, with 0 for what they leave out; None if they describe nothing."""
    # A model without a number asks for one card of it.
    milli = card_milli(args.cards) if args.cards is not None else WHOLE_CARD if args.card_model else 0
    if not (args.cpus or args.memory or milli):
        return None
    return NodeSpec(
        cpus=args.cpus or 0, memory_mib=args.memory or 0, card_milli=milli, card_models=tuple(args.card_model or ())
    )


def card_milli(text: str) -> int:
    """Return thousandths of a card: whole cards, or a part of one."""
    try:
        milli = round(float(text) * WHOLE_CARD)
    except (ValueError, OverflowError):
        milli = -1
    # A part is of one card only: 1.5 cards would be two parts of different size.
    if milli < 0 or (milli > WHOLE_CARD and milli % WHOLE_CARD):
        raise UsageError(f"--cards: {safe(text)} is not a number of cards such as 4, or a part of one such as 0.5")
    return milli


def drain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("nodes", nargs="+", metavar="NODE", help="the nodes; running jobs continue")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="what people read who wait for them")
    parser.add_argument(
        "--within",
        type=seconds,
        nargs="?",
        const=RECLAIM_SECONDS,
        metavar="TIME",
        help="reclaim the nodes, as spot nodes are: running jobs are notified and must end in this time (5m)",
    )


async def run_drain(call: Call) -> int:
    reason, within = call.args.reason, call.args.within
    return await try_each(
        call, call.args.nodes, lambda name: call.backend.drain_node(name, reason, within), "drained", safe
    )


def reclaim_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("nodes", nargs="+", metavar="NODE", help="the nodes that their provider takes back")
    parser.add_argument(
        "--grace",
        type=seconds,
        default=RECLAIM_SECONDS,
        metavar="TIME",
        help="the time in which running jobs, which are notified, must end (5m)",
    )
    parser.add_argument("--reason", default=TAKEN_BACK, metavar="TEXT", help=f'what people read ("{TAKEN_BACK}")')


async def run_reclaim(call: Call) -> int:
    reason, grace = call.args.reason, call.args.grace
    return await try_each(
        call, call.args.nodes, lambda name: call.backend.drain_node(name, reason, grace), "reclaimed", safe
    )


def resume_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("nodes", nargs="+", metavar="NODE", help="the nodes")


DRAIN = Verb(
    drain_arguments,
    run_drain,
    ('cockpit nodes drain n07 --reason "new memory"', "cockpit nodes drain n07 --reason spot --within 5m"),
)
RECLAIM = Verb(
    reclaim_arguments, run_reclaim, ("cockpit reclaim n07 --grace 300", "cockpit reclaim n07 n08 --grace 2m")
)
RESUME = Verb(
    resume_arguments,
    lambda call: try_each(call, call.args.nodes, call.backend.resume_node, "resumed", safe),
    ("cockpit nodes resume n07",),
)
NODES = Verb(
    nodes_arguments,
    run_nodes,
    (
        "cockpit nodes",
        "cockpit nodes --cards 4 --card-model A100 --filter status:idle",
        "cockpit nodes --filter status:drained,down -o wide",
    ),
)


def cards_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also cards of nodes that are drained or down")
    parser.add_argument("--models", action="store_true", help="the models instead: cards, free ones, and queued for")
    add_list_options(parser)


async def run_cards(call: Call) -> int:
    if call.args.models:
        return await list_rows(call, MODELS, lambda: _models(call))
    return await list_rows(call, CARDS_TABLE, lambda: _card_rows_of(call), user=await current_user(call))


async def _card_rows_of(call: Call) -> list[CardRow]:
    requests = known_requests(await call.backend.jobs(ended=False))
    nodes = await call.backend.nodes()
    shown = [row for row in nodes if call.args.all or row.node.state is NodeState.UP]
    return [part for row in shown for part in card_rows(row, requests)]


async def _models(call: Call) -> list[ModelRow]:
    return model_rows(await call.backend.nodes(), await call.backend.overview())


CARDS = Verb(
    cards_arguments,
    run_cards,
    (
        "cockpit cards",
        "cockpit cards --models",
        "cockpit cards --filter 'model:A100 state:free,stranded'",
        "cockpit cards --filter user:me --sort node,card -o json",
        "cockpit cards --watch --filter state:stranded",
    ),
)
