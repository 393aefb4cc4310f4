"""`cockpit schema`: the JSON Schema of what `-o json` writes, made from the columns."""

from __future__ import annotations

from argparse import ArgumentParser

import msgspec

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.records import JSON_VERSION
from cockpit.headless.services import Call
from cockpit.present.schema import table_schema
from cockpit.present.tables.all import TABLES


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("table", choices=sorted(TABLES), nargs="?", help="which list; none: their names")


async def run(call: Call) -> int:
    if call.args.table is None:
        for name in sorted(TABLES):
            call.streams.line(name)
    else:
        schema = table_schema(TABLES[call.args.table], JSON_VERSION)
        call.streams.write(msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n")
    return ExitCode.OK


SCHEMA = Verb(arguments, run, ("cockpit schema", "cockpit schema jobs"))
