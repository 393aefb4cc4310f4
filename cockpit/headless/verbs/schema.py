"""`cockpit schema`: the JSON Schema of the files that cockpit reads, and of what `-o json` writes."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import command_of
from cockpit.headless.records import JSON_VERSION
from cockpit.headless.services import Call
from cockpit.present.columns import table_schema
from cockpit.present.tables.all import TABLES

JOB, CLUSTER, CATALOGUE = "job", "cluster", "catalogue-file"
FILES = {JOB: "a job file", CLUSTER: "cluster.toml", CATALOGUE: "catalogue.toml"}


def names() -> dict[str, str]:
    """Return each schema's name and subject."""
    return FILES | {name: f"cockpit {command_of(name)} -o json" for name in sorted(TABLES)}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", choices=list(names()), nargs="?", metavar="NAME", help="which one; none: list them")


async def run(call: Call) -> int:
    if call.args.name is None:
        for name, what in names().items():
            call.streams.line(f"{name:<18}{what}")
    else:
        call.streams.write(msgspec.json.format(msgspec.json.encode(schema(call.args.name)), indent=2) + b"\n")
    return ExitCode.OK


def schema(name: str) -> dict[str, Any]:
    """JSON Schema 2020-12."""
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


SCHEMA = Verb(arguments, run, ("cockpit schema", "cockpit schema job > job.schema.json", "cockpit schema jobs"))
