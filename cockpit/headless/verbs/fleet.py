"""`cockpit fleet`, `fleet pods` and `fleet object`: the jobs and pods of all clusters, and a member's own object."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, add_reveal_option, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.services import Call
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow
from cockpit.present.safe import safe
from cockpit.present.tables.fleet import FLEET as FLEET_TABLE
from cockpit.present.tables.fleet import FLEET_PODS as PODS_TABLE


def fleet_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, nargs="?", metavar="ID", help="only this job's parts")
    add_list_options(parser)


async def run_fleet(call: Call) -> int:
    return await list_rows(call, FLEET_TABLE, lambda: _job_rows(call))


async def _job_rows(call: Call) -> tuple[FleetJobRow, ...]:
    job = await call.job_id(call.args.job) if call.args.job else None
    return (await call.backend.fleet(job=job)).jobs


async def run_pods(call: Call) -> int:
    return await list_rows(call, PODS_TABLE, lambda: _pod_rows(call))


async def _pod_rows(call: Call) -> tuple[FleetPodRow, ...]:
    job = await call.job_id(call.args.job) if call.args.job else None
    return (await call.backend.fleet(job=job, pods=True)).pods


def object_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the job")
    parser.add_argument("-m", "--member", default="", metavar="NAME", help="the member cluster (the first that has it)")
    add_reveal_option(parser)


async def run_object(call: Call) -> int:
    found = await call.backend.own_object(await call.job_id(call.args.job), cluster=call.args.member)
    call.streams.lines(safe(each) for each in found.text.splitlines())
    return ExitCode.OK


FLEET = Verb(
    fleet_arguments,
    run_fleet,
    ("cockpit fleet", "cockpit -c all fleet -o json", "cockpit fleet 4711", "cockpit fleet --filter 'cluster:west'"),
)
PODS = Verb(fleet_arguments, run_pods, ("cockpit fleet pods", "cockpit fleet pods 4711 -o json"))
OBJECT = Verb(object_arguments, run_object, ("cockpit fleet object 4711", "cockpit fleet object 4711 -m west"))
