"""`cockpit completion`: what has a shell complete cockpit's words."""

from __future__ import annotations

from argparse import ArgumentParser

from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.headless.shellscripts import SCRIPTS


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))
    parser.add_argument("line", nargs="?", metavar="LINE", help="instead of the script: what may follow in this line")


async def run(call: Call) -> int:
    if call.args.line is None:
        call.streams.text(SCRIPTS[call.args.shell])
    else:
        await _complete(call)
    return ExitCode.OK


async def _complete(call: Call) -> None:
    from cockpit.headless.completing import Completion, place_behind
    from cockpit.headless.offers import BY_SHELL, Offers
    from cockpit.headless.shellscripts import lines_for, words_on

    words, last = words_on(call.args.line)
    option, equals, value = last.partition("=")
    joined = bool(equals) and option.startswith("--")
    offers = Offers(place_behind([*words[1:], option] if joined else words[1:]), call.services)
    try:
        found = await offers.fitting(value if joined else last)
    finally:
        await offers.close()
    if joined:
        found = [each if each in BY_SHELL else Completion(f"{option}={each.word}", each.about) for each in found]
    for line in lines_for(call.args.shell, found, last):
        call.streams.line(line)


COMPLETION = Verb(
    arguments,
    run,
    (
        "cockpit completion bash > ~/.local/share/bash-completion/completions/cockpit",
        "cockpit completion fish > ~/.config/fish/completions/cockpit.fish",
        "cockpit completion fish 'cockpit cancel '",
    ),
)
