"""`cockpit doctor`: what this machine has, lacks, and what to do about it."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.output import add_output_options, chosen_rows, is_page, write_rows
from cockpit.headless.services import Call
from cockpit.present.tables.findings import FINDINGS, findings_lines

MISSING = "missing"
"""The level of a finding that keeps something from working."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--journal",
        action="store_true",
        help="verify the engine's whole store: every event, archive file, snapshot and record",
    )
    add_output_options(parser)


async def run(call: Call) -> int:
    """Exit code `MISSING` where something does not work, `STORE` where the journal is damaged."""
    findings = call.services.journal(call.args.cluster) if call.args.journal else call.services.findings()
    if is_page(call.args):
        shown = chosen_rows(FINDINGS, findings, call.args, call.context())
        room = call.streams.columns if call.streams.stdout.isatty() else None
        for line in findings_lines(shown, room):
            call.streams.line(line)
    else:
        write_rows(FINDINGS, findings, call.args, call.context(), call.streams)
    if not any(finding.level == MISSING for finding in findings):
        return ExitCode.OK
    return ExitCode.STORE if call.args.journal else ExitCode.MISSING


DOCTOR = Verb(
    arguments,
    run,
    ("cockpit doctor", "cockpit doctor -o json --filter '!level:ok'", "cockpit doctor --journal"),
)
