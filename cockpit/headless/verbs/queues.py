"""`cockpit queues`: where jobs wait. `cockpit quota`: the quota tree; `apply` and `remove` for administrators."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.headless.arguments import Verb, no_options
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.model.capabilities import Ability
from cockpit.model.quota import places
from cockpit.model.view import QueueKind, QueueRow
from cockpit.present.safe import safe
from cockpit.present.tables.queues import QUEUES as TABLE
from cockpit.present.tables.queues import QUOTA as TREE
from cockpit.present.units import counted


async def run_quota(call: Call) -> int:
    never = call.backend.capabilities.why_not(Ability.QUOTA_TREE)
    table = replace(TREE, empty=never) if never else TREE
    return await list_rows(call, table, lambda: _tree(call))


async def _rows(call: Call) -> Sequence[QueueRow]:
    return (await call.backend.queues()).rows


async def _tree(call: Call) -> Sequence[QueueRow]:
    return [row for row in await _rows(call) if row.kind is QueueKind.QUOTA]


def apply_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an ElasticQuotaTree manifest, YAML or JSON; - is stdin")


async def run_apply(call: Call) -> int:
    from cockpit.formats.quotatree import read_quota_tree
    from cockpit.headless.verbs.submit import read_text

    source, text, _ = read_text(call.args.file, call)
    tree = read_quota_tree(source, text)
    await call.backend.apply_quota(tree)
    call.streams.line(f"applied quota tree {safe(tree.name)}: {counted(sum(1 for _ in places(tree.root)), 'queue')}")
    return ExitCode.OK


async def run_remove(call: Call) -> int:
    name = (await call.backend.queues()).tree
    await call.backend.remove_quota()
    call.streams.line(f"removed quota tree {safe(name)}".rstrip())  # a repeat finds no name
    return ExitCode.OK


QUEUES = Verb(
    add_list_options,
    lambda call: list_rows(call, TABLE, lambda: _rows(call)),
    ("cockpit queues", "cockpit queues --filter 'depth>10' -o json", "cockpit queues --watch"),
)
QUOTA = Verb(add_list_options, run_quota, ("cockpit quota", "cockpit quota --filter 'cards_borrowed>0'"))
APPLY = Verb(apply_arguments, run_apply, ("cockpit quota apply quota.yaml",))
REMOVE = Verb(no_options, run_remove, ("cockpit quota remove",))
