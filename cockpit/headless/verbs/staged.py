"""`cockpit staged`: copies of datasets and images on this machine, and `remove`; for administrators."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.headless.trying import try_each
from cockpit.present.safe import safe
from cockpit.present.tables.staged import STAGED as TABLE


async def run_list(call: Call) -> int:
    return await list_rows(call, TABLE, call.backend.staged)


def remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("keys", nargs="+", metavar="KEY", help="as the list shows them; no job may use them")


async def run_remove(call: Call) -> int:
    return await try_each(call, call.args.keys, call.backend.unstage, "removed", safe)


STAGED = Verb(add_list_options, run_list, ("cockpit staged", "cockpit staged --filter state:kept -o json"))
REMOVE = Verb(remove_arguments, run_remove, ("cockpit staged remove 4f2a90c1d3e8",))
