"""`cockpit` without a verb: the cluster at a glance."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.present.overview import overview_lines


def arguments(_: ArgumentParser) -> None:
    """No options of its own."""


async def run(call: Call) -> int:
    for line in overview_lines(await call.backend.overview(), await call.backend.nodes()):
        call.streams.line(line)
    return ExitCode.OK


OVERVIEW = Verb(arguments, run, ("cockpit", "cockpit -c lab-a"))
