"""`cockpit new`: a first job file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from cockpit.formats.job.template import KINDS, REGULAR, template
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call


def arguments(parser: ArgumentParser) -> None:
    kinds = "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
    parser.add_argument("kind", choices=list(KINDS), nargs="?", default=REGULAR, metavar="KIND", help=kinds)


async def run(call: Call) -> int:
    """Print the job file, for a file or an editor."""
    call.streams.write(template(call.args.kind, str(Path.cwd())).encode())
    return ExitCode.OK


NEW = Verb(arguments, run, ("cockpit new > job.yaml", "cockpit new array > sweep.yaml", "cockpit new cards | less"))
