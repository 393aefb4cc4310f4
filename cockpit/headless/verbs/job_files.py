"""`cockpit new`, `convert`, `launch --dry-run` and `schema`: write job files and show what becomes of them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.errors import RequestRefused
from cockpit.formats.job.template import KINDS, REGULAR, template
from cockpit.headless.arguments import UsageError, Verb, add_reveal_option
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import command_of
from cockpit.headless.output import add_output_options, chosen_rows, is_page, write_rows
from cockpit.headless.records import JSON_VERSION
from cockpit.headless.services import Call
from cockpit.headless.verbs.submit import placed, read_files
from cockpit.model.capabilities import Ability
from cockpit.model.masking import masked_spec
from cockpit.present.columns import table_schema
from cockpit.present.safe import safe
from cockpit.present.tables.all import TABLES

if TYPE_CHECKING:
    from cockpit.model.image import Mpi
    from cockpit.model.job import Submitter
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec
    from cockpit.present.tables.launch import Launch


def new_arguments(parser: ArgumentParser) -> None:
    kinds = "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
    parser.add_argument("kind", choices=list(KINDS), nargs="?", default=REGULAR, metavar="KIND", help=kinds)


async def run_new(call: Call) -> int:
    """Print the job file, for a file or an editor."""
    call.streams.write(template(call.args.kind, str(Path.cwd())).encode())
    return ExitCode.OK


NEW = Verb(
    new_arguments, run_new, ("cockpit new > job.yaml", "cockpit new array > sweep.yaml", "cockpit new cards | less")
)


FORMS = (
    *("yaml", "json", "sbatch", "arena", "gcloud", "pytorchjob", "tfjob", "mpijob", "trainjob", "trainingjob", "job"),
    *("volcanojob", "customjob"),
)


def convert_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs=1, metavar="FILE", help="as for submit; - is stdin")
    parser.add_argument("--to", choices=FORMS, default="yaml", metavar="FORM", help=", ".join(FORMS))
    add_reveal_option(parser)


async def run_convert(call: Call) -> int:
    from cockpit.formats.foreign.exchange import Form, written

    specs, _ = read_files(call, exports=False)
    if len(specs) != 1:
        raise UsageError(f"{call.args.files[0]} holds {len(specs)} jobs; convert takes one")

    def read(source: str, text: str) -> list[JobSpec]:
        return call.services.read_jobs(f"{source}.json", text, "/")

    # Secrets stay in a file, which is submitted or applied next and would not work without them.
    spec = masked_spec(specs[0]) if call.streams.is_terminal else specs[0]
    result = written(spec, Form(call.args.to), read)
    if result.lost:
        # On stderr, since stdout is the converted job, which is often piped on.
        call.streams.say(f"{call.args.to} cannot say all of: {', '.join(map(safe, result.lost))}")
    call.streams.write_file(result.text.encode())
    # What is copied from a terminal would not be the text that a file gets.
    if spec is not specs[0] or call.streams.changes(result.text):
        call.streams.say(
            "Do not copy this from the terminal: secrets are shown as ***, and characters that would act on the "
            "terminal as text, such as \\x1b. For the unchanged text write it into a file: `cockpit convert … > FILE`."
        )
    return ExitCode.OK


CONVERT = Verb(
    convert_arguments,
    run_convert,
    ("cockpit convert train.sbatch", "cockpit convert job.yaml --to pytorchjob | kubectl apply -f -"),
)


def launch_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="as for submit; - is stdin")
    parser.add_argument(
        "--dry-run", action="store_true", required=True, help="only show it; `cockpit submit` starts jobs"
    )
    add_output_options(parser)
    add_reveal_option(parser)


async def run_launch(call: Call) -> int:
    from cockpit.present.tables.launch import LAUNCH as LAUNCH_TABLE

    specs, places = read_files(call)
    if call.backend.capabilities.has(Ability.SCRIPTS):
        return await _scripts(call, specs, places)
    who = _submitter()
    nodes = [row.node for row in await call.backend.nodes()]
    # Each task of a batch has a command and environment of its own.
    tasks = [each for spec in specs for each in _tasks(spec).items()]
    launches = [each for name, task in tasks for each in _launches(name, task, who, nodes)]
    if not is_page(call.args):
        write_rows(LAUNCH_TABLE, launches, call.args, call.context(), call.streams)
        return ExitCode.OK
    from cockpit.present.tables.launch import launch_lines

    call.streams.lines(launch_lines(chosen_rows(LAUNCH_TABLE, launches, call.args, call.context())))
    return ExitCode.OK


async def _scripts(call: Call, specs: Sequence[JobSpec], places: Sequence[str]) -> int:
    """Print the scripts for a cluster that runs scripts itself, which determines everything else when it runs them."""
    from cockpit.present.command_text import command_lines
    from cockpit.present.tables.launch import LAUNCH_SCRIPT, LaunchScript

    rows = []
    for spec, place in zip(specs, places, strict=True):
        try:
            shown = await call.backend.written(masked_spec(spec))
        except RequestRefused as no:
            raise RequestRefused(placed(no.refusal, [place])) from no
        if shown is not None:
            rows.append(LaunchScript(spec.name, shown.argv, shown.stdin))
    if not is_page(call.args):
        write_rows(LAUNCH_SCRIPT, rows, call.args, call.context(), call.streams)
        return ExitCode.OK
    for each in chosen_rows(LAUNCH_SCRIPT, rows, call.args, call.context()):
        call.streams.lines(command_lines(each.argv, each.script))
    return ExitCode.OK


def _tasks(spec: JobSpec) -> dict[str, JobSpec]:
    """Return a batch's tasks by their folder names, and any other job under its own name."""
    from cockpit.launch.sweeps import task_spec

    return {f"{spec.name}-{index}": task_spec(spec, index) for index in range(len(spec.tasks))} or {spec.name: spec}


def _launches(name: str, spec: JobSpec, who: Submitter, nodes: Sequence[Node]) -> Iterator[Launch]:
    from cockpit.launch.example_placement import example_node, example_placement
    from cockpit.launch.plan import launch_plan
    from cockpit.model.ids import JobId, ReplicaId
    from cockpit.present.tables.launch import Launch

    spec = masked_spec(spec)
    placement = example_placement(spec)
    mpi = _mpi_of(spec)
    for part in placement:
        # No job has this id, so that nothing printed here is taken for a real job's.
        replica = ReplicaId(JobId(0), 1, part.rank)
        node = example_node(spec, part, nodes, mpi)
        plan = launch_plan(spec, who, node, part, placement, replica)
        yield Launch(name, part.rank, part.node, spec.command, plan)


def _mpi_of(spec: JobSpec) -> Mpi | None:
    """Return the MPI of this machine, whose root the container would start from."""
    from pathlib import Path

    from cockpit.model.image import HOST
    from cockpit.runtime.machine import detect_mpi

    # An image may have another MPI, which is not looked into here.
    return detect_mpi(Path("/")) if spec.image == HOST else None


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
    launch_arguments,
    run_launch,
    ("cockpit launch --dry-run job.yaml", "cockpit launch --dry-run job.yaml -o json | jq '.rows[].argv'"),
)


JOB, CLUSTER, CATALOGUE = "job", "cluster", "catalogue-file"
FILES = {JOB: "a job file", CLUSTER: "cluster.toml", CATALOGUE: "catalogue.toml"}


def schema_names() -> dict[str, str]:
    """Return each schema's name and subject."""
    return FILES | {name: f"cockpit {command_of(name)} -o json" for name in sorted(TABLES)}


def schema_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", choices=list(schema_names()), nargs="?", metavar="NAME", help="which one; none: list them"
    )


async def run_schema(call: Call) -> int:
    if call.args.name is None:
        call.streams.lines(f"{name:<18}{what}" for name, what in schema_names().items())
    else:
        call.streams.write(msgspec.json.format(msgspec.json.encode(schema(call.args.name)), indent=2) + b"\n")
    return ExitCode.OK


def schema(name: str) -> dict[str, Any]:
    """Return the schema of this name, in JSON Schema 2020-12."""
    if name == JOB:
        from cockpit.formats.job.file import job_schema

        return job_schema()
    if name == CLUSTER:
        from cockpit.formats.cluster.file import cluster_schema

        return cluster_schema()
    if name == CATALOGUE:
        from cockpit.formats.catalogue.file import catalogue_schema

        return catalogue_schema()
    return table_schema(TABLES[name], JSON_VERSION)


SCHEMA = Verb(
    schema_arguments, run_schema, ("cockpit schema", "cockpit schema job > job.schema.json", "cockpit schema jobs")
)
