"""`cockpit predict`: when the jobs of a file would start if they were submitted now. Nothing is submitted."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.errors import RequestRefused
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options
from cockpit.headless.services import Call
from cockpit.headless.verbs.explain import tell
from cockpit.headless.verbs.submit import placed, read_files


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML, JSON, or JSON Lines with one job a line; - is stdin"
    )
    add_output_options(parser, select=False)


async def run(call: Call) -> int:
    from cockpit.present.tables.outlook import PREDICT as TABLE

    specs, places = read_files(call)
    try:
        outlooks = await call.backend.predict(specs)
    except RequestRefused as no:
        raise RequestRefused(placed(no.refusal, places)) from no
    tell(call, TABLE, outlooks)
    return ExitCode.OK


PREDICT = Verb(
    arguments,
    run,
    ("cockpit predict job.yaml", "cockpit predict job.yaml -o json | jq -r '.rows[0].likely_at'"),
)
