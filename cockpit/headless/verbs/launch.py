"""`cockpit launch --dry-run`: what each replica of a job would be started with; nothing is started."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, chosen_rows, is_page, write_rows
from cockpit.headless.services import Call
from cockpit.headless.verbs.submit import placed, read_files
from cockpit.model.capabilities import Ability

if TYPE_CHECKING:
    from cockpit.model.image import Mpi
    from cockpit.model.job import Submitter
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec
    from cockpit.present.tables.launch import Launch


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="as for submit; - is stdin")
    parser.add_argument(
        "--dry-run", action="store_true", required=True, help="only show it; `cockpit submit` starts jobs"
    )
    add_output_options(parser)


async def run(call: Call) -> int:
    from cockpit.present.tables.launch import LAUNCH as TABLE

    specs, places = read_files(call)
    if call.backend.capabilities.has(Ability.SCRIPTS):
        return await _scripts(call, specs, places)
    who = _submitter()
    nodes = [row.node for row in await call.backend.nodes()]
    tasks = [each for spec in specs for each in _tasks(spec).items()]
    launches = [each for name, task in tasks for each in _launches(name, task, who, nodes)]
    if not is_page(call.args):
        write_rows(TABLE, launches, call.args, call.context(), call.streams)
        return ExitCode.OK
    from cockpit.present.tables.launch import launch_lines

    for line in launch_lines(chosen_rows(TABLE, launches, call.args, call.context())):
        call.streams.line(line)
    return ExitCode.OK


async def _scripts(call: Call, specs: Sequence[JobSpec], places: Sequence[str]) -> int:
    """A cluster of others is handed a script, which finds out the rest once it runs."""
    from cockpit.present.command_text import command_lines
    from cockpit.present.tables.launch import LAUNCH_SCRIPT, LaunchScript

    rows = []
    for spec, place in zip(specs, places, strict=True):
        try:
            shown = await call.backend.written(spec)
        except RequestRefused as no:
            raise RequestRefused(placed(no.refusal, [place])) from no
        if shown is not None:
            rows.append(LaunchScript(spec.name, shown.argv, shown.stdin))
    if not is_page(call.args):
        write_rows(LAUNCH_SCRIPT, rows, call.args, call.context(), call.streams)
        return ExitCode.OK
    for each in chosen_rows(LAUNCH_SCRIPT, rows, call.args, call.context()):
        for text in command_lines(each.argv, each.script):
            call.streams.line(text)
    return ExitCode.OK


def _tasks(spec: JobSpec) -> dict[str, JobSpec]:
    """Return a batch's tasks by their folder names, and any other job under its own name."""
    from cockpit.launch.sweeps import task_spec

    return {f"{spec.name}-{index}": task_spec(spec, index) for index in range(len(spec.tasks))} or {spec.name: spec}


def _launches(name: str, spec: JobSpec, who: Submitter, nodes: Sequence[Node]) -> Iterator[Launch]:
    from cockpit.launch.imagined import imagined_node, imagined_placement
    from cockpit.launch.plan import launch_plan
    from cockpit.model.ids import JobId, ReplicaId
    from cockpit.present.tables.launch import Launch

    placement = imagined_placement(spec)
    mpi = _mpi_of(spec)
    for part in placement:
        replica = ReplicaId(JobId(0), 1, part.rank)
        node = imagined_node(spec, part, nodes, mpi)
        plan = launch_plan(spec, who, node, part, placement, replica)
        yield Launch(name, part.rank, part.node, spec.command, plan)


def _mpi_of(spec: JobSpec) -> Mpi | None:
    """Return the MPI of this machine, whose root the container would start from."""
    from pathlib import Path

    from cockpit.model.image import HOST
    from cockpit.runtime.mpi import found_mpi

    return found_mpi(Path("/")) if spec.image == HOST else None


def _submitter() -> Submitter:
    """Return the user who runs this command."""
    import os
    import pwd

    from cockpit.model.ids import UserName
    from cockpit.model.job import Submitter

    uid, gid = os.geteuid(), os.getegid()
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return Submitter(name=UserName(str(uid)), uid=uid, gid=gid, groups=(gid,), home="/")
    return Submitter(name=UserName(known.pw_name), uid=uid, gid=gid, groups=(gid,), home=known.pw_dir)


LAUNCH = Verb(
    arguments,
    run,
    ("cockpit launch --dry-run job.yaml", "cockpit launch --dry-run job.yaml -o json | jq '.rows[].argv'"),
)
