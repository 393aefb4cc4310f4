"""`cockpit play`: the real cockpit without a terminal, by a script. Shows, tests, and takes pictures."""

from __future__ import annotations

import gc
from argparse import ArgumentParser
from pathlib import Path

from cockpit.errors import CockpitError
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.play_script import Cluster, ExpectationFailed, read_script
from cockpit.headless.services import Call


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help="the file with the steps; - is standard input")
    parser.add_argument(
        "--out", default=".", metavar="FOLDER", help="where screenshots go; made where it is missing (here)"
    )


async def run(call: Call) -> int:
    """`-c` takes the place of the cluster that the script names."""
    args = call.args
    script = read_script(args.script, _text(call))
    if args.cluster is not None:
        script = script._replace(cluster=Cluster(args.cluster))
    gc.enable()  # commands switch it off because they end soon; an open cockpit lives on
    try:
        call.services.play(script, Path(args.out))
    except ExpectationFailed as unmet:
        call.streams.say(str(unmet))
        return ExitCode.UNMET
    return ExitCode.OK


def _text(call: Call) -> str:
    name = call.args.script
    try:
        data = call.streams.stdin.read() if name == "-" else Path(name).read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise CockpitError(f"{name} cannot be read: {reason}.") from error


PLAY = Verb(
    arguments,
    run,
    (
        "cockpit play tour.play",
        "cockpit play tour.play --out pictures",
        "cockpit play -c demo smoke.play && echo as expected",
    ),
)
