"""`cockpit overview`, which is also `cockpit` without a verb, `clusters` and `events`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from cockpit.config.cluster_names import EVERY_CLUSTER
from cockpit.headless.arguments import UsageError, Verb, count, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, add_page_options, list_rows
from cockpit.headless.output import add_output_options, is_page, write_rows
from cockpit.headless.services import Call
from cockpit.model.capabilities import Ability
from cockpit.present.tables.clusters import CLUSTERS as CLUSTERS_TABLE
from cockpit.present.tables.events import EVENTS as EVENTS_TABLE
from cockpit.present.tables.overview import OVERVIEW as OVERVIEW_TABLE
from cockpit.present.tables.overview import overview_lines

if TYPE_CHECKING:
    from cockpit.model.view import Overview


async def run_overview(call: Call) -> int:
    if not is_page(call.args):
        return await list_rows(call, OVERVIEW_TABLE, lambda: _row(call))
    call.streams.lines(overview_lines(await call.backend.overview(), await call.backend.nodes()))
    return ExitCode.OK


async def _row(call: Call) -> list[Overview]:
    return [await call.backend.overview()]


OVERVIEW = Verb(
    add_page_options, run_overview, ("cockpit", "cockpit -c lab-a", "cockpit overview --watch --columns running,queued")
)


async def run_clusters(call: Call) -> int:
    """List the clusters. All are asked at once with a time limit, so that a silent one delays nothing."""
    if call.args.cluster not in {None, EVERY_CLUSTER}:
        raise UsageError("`clusters` lists all of them; choose one with --filter name:NAME")
    # By the merged view, which asks all of them at once.
    call.args.cluster = EVERY_CLUSTER
    return await list_rows(call, CLUSTERS_TABLE, call.backend.clusters)


CLUSTERS = Verb(
    add_list_options,
    run_clusters,
    ("cockpit clusters", "cockpit clusters -o json", "cockpit clusters --filter 'state:live queued<10' --sort queued"),
)


def events_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "job", type=reference, nargs="?", metavar="ID", help="only events of this job; 4711/2: see --replica"
    )
    parser.add_argument("--replica", type=count, metavar="N", help="on a fleet: those of the cluster that runs it")
    parser.add_argument("-n", "--number", type=count, default=1000, metavar="N", help="the last so many (1000)")
    parser.add_argument("--watch", action="store_true", help="one line of JSON for each as it comes, until interrupted")
    add_output_options(parser)


async def run_events(call: Call) -> int:
    job = await call.job_id(call.args.job) if call.args.job else None
    named = call.args.job.rank if call.args.job else None
    rank = call.args.replica if call.args.replica is not None else named
    if rank is not None and job is None:
        raise UsageError("--replica N needs the ID of a job")
    if call.args.watch:
        from cockpit.headless.watch import watch_events

        await watch_events(call, job, rank)
        return ExitCode.OK
    records = await call.backend.events(job=job, limit=call.args.number, rank=rank)
    write_rows(EVENTS_TABLE, records, call.args, call.context(), call.streams)
    # Some clusters do not report everything that happens.
    if incomplete := call.backend.capabilities.why_not(Ability.EVERY_EVENT):
        call.streams.hint(incomplete)
    return ExitCode.OK


EVENTS = Verb(
    events_arguments,
    run_events,
    (
        "cockpit events -n 20",
        "cockpit events 4711",
        "cockpit events 4711/0",
        "cockpit events --watch --filter event:job_ended",
    ),
)
