"""`cockpit demo`: a living cluster to look around in and to try scripts on. Nothing of it is real."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, ArgumentTypeError

from msgspec.structs import replace

from cockpit.headless.arguments import Verb, count, parse
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.present.safe import safe

FASTEST = 100_000


def speed(text: str) -> float:
    """Return how many times faster than real time the demo runs."""
    try:
        factor = float(text.removesuffix("x").removesuffix("×"))
    except ValueError:
        factor = 0.0
    if not 0 < factor <= FASTEST:
        raise ArgumentTypeError(f"{safe(text)} is not a number of times between 0 and {FASTEST}, such as 60")
    return factor


def arguments(parser: ArgumentParser) -> None:
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


async def run(call: Call) -> int:
    """Run each command on the same demo. Returns the first exit code that is not 0."""
    from cockpit.backends.demo.blocking import BlockingDemo

    args = call.args
    chosen = [parse(words) for words in commands(args.headless, args.command_words)]
    demo = BlockingDemo.open(args.fixture, args.seed, args.speed)
    call.streams.now = demo.now
    services = replace(call.services, connect=lambda _: demo)
    code: int = ExitCode.OK
    try:
        for verb, options in chosen:
            options.saved_filters = args.saved_filters
            code = code or await verb.run(Call(options, services, call.streams))
    finally:
        await demo.close()
    return code


def commands(words: list[str] | None, after_dashes: tuple[str, ...]) -> list[list[str]]:
    """The one that was given, or what shows the most."""
    if not words:
        return [["overview"], ["jobs"]]
    return [[*words, "--", *after_dashes] if after_dashes else words]


DEMO = Verb(
    arguments,
    run,
    (
        "cockpit demo",
        "cockpit demo --seed 7 --headless jobs --filter state:queued",
        "cockpit demo --speed 600 --headless wait 120",
        "cockpit -c demo job 120",
    ),
)
