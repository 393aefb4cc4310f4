"""`cockpit clusters`: all that this person uses, whether they answer, and their load."""

from __future__ import annotations

from cockpit.config.clusternames import EVERY_CLUSTER
from cockpit.headless.arguments import UsageError, Verb
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.present.tables.clusters import CLUSTERS as TABLE


async def run(call: Call) -> int:
    """List the clusters. All are asked at once with a time limit, so that a silent one delays nothing."""
    if call.args.cluster not in {None, EVERY_CLUSTER}:
        raise UsageError("`clusters` lists all of them; choose one with --filter name:NAME")
    call.args.cluster = EVERY_CLUSTER
    return await list_rows(call, TABLE, call.backend.clusters)


CLUSTERS = Verb(
    add_list_options,
    run,
    ("cockpit clusters", "cockpit clusters -o json", "cockpit clusters --filter 'state:live queued<10' --sort queued"),
)
