"""`cockpit demo` opens a simulated cluster; `play` runs the terminal UI by a script."""

from __future__ import annotations

import gc
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError
from pathlib import Path

from msgspec.structs import replace

from cockpit.errors import CockpitError
from cockpit.headless.arguments import Verb, count, parse
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.play_script import Cluster, ExpectationFailed, read_script
from cockpit.headless.services import Call
from cockpit.present.safe import safe

FASTEST = 100_000
"""Highest speed of a demo, at which a day passes in a second."""


def speed(text: str) -> float:
    """Return how many times faster than real time the demo runs."""
    try:
        factor = float(text.removesuffix("x").removesuffix("×"))
    except ValueError:
        factor = 0.0
    if not 0 < factor <= FASTEST:
        raise ArgumentTypeError(f"{safe(text)} is not a number of times between 0 and {FASTEST}, such as 60")
    return factor


def demo_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "fixture",
        nargs="?",
        default="campus",
        metavar="FIXTURE",
        help="which cluster: a name, or a .toml file (campus)",
    )
    parser.add_argument("--seed", type=count, default=1, metavar="N", help="another number is another history (1)")
    parser.add_argument("--speed", type=speed, default=10.0, metavar="X", help="so many times faster than real (10)")
    parser.add_argument(
        "--headless", nargs=REMAINDER, metavar="VERB", help="run this command on it, as cockpit -c demo VERB would"
    )


async def run_demo(call: Call) -> int:
    """Run each command on the same demo. Returns the first exit code that is not 0."""
    from cockpit.backends.demo.backend import BlockingDemo

    args = call.args
    # All are parsed before the demo is opened, which takes longer.
    chosen = [parse(words) for words in commands(args.headless, args.command_words)]
    demo = BlockingDemo.open(args.fixture, args.seed, args.speed)
    # Times are those of the demo's own clock.
    call.streams.now = demo.now
    services = replace(call.services, connect=lambda _: demo)
    code: int = ExitCode.OK
    try:
        for verb, options in chosen:
            options.saved_filters = args.saved_filters
            # A failure skips the commands after it.
            code = code or await verb.run(Call(options, services, call.streams))
    finally:
        await demo.close()
    return code


def commands(words: list[str] | None, after_dashes: tuple[str, ...]) -> list[list[str]]:
    """Return the command that was given, or the two that show the most."""
    if not words:
        return [["overview"], ["jobs"]]
    return [[*words, "--", *after_dashes] if after_dashes else words]


DEMO = Verb(
    demo_arguments,
    run_demo,
    (
        "cockpit demo",
        "cockpit demo --seed 7 --headless jobs --filter state:queued",
        "cockpit demo --speed 600 --headless wait 120",
        "cockpit -c demo job 120",
    ),
)


def play_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help="the file with the steps; - is standard input")
    parser.add_argument(
        "--out", default=".", metavar="FOLDER", help="where screenshots go; made where it is missing (here)"
    )


async def run_play(call: Call) -> int:
    """Run a script. `-c` takes the place of the cluster that the script names."""
    args = call.args
    script = read_script(args.script, _script_text(call))
    if args.cluster is not None:
        script = script._replace(cluster=Cluster(args.cluster))
    gc.enable()  # commands switch it off because they end soon; an open cockpit lives on
    try:
        call.services.play(script, Path(args.out))
    except ExpectationFailed as unmet:
        call.streams.say(str(unmet))
        return ExitCode.UNMET
    return ExitCode.OK


def _script_text(call: Call) -> str:
    name = call.args.script
    try:
        data = call.streams.stdin.read() if name == "-" else Path(name).read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise CockpitError(f"{name} cannot be read: {reason}.") from error


PLAY = Verb(
    play_arguments,
    run_play,
    (
        "cockpit play tour.play",
        "cockpit play tour.play --out pictures",
        "cockpit play -c demo smoke.play && echo as expected",
    ),
)
