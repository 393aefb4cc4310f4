"""The command line that opens the cockpit: `cockpit [-c NAME] [--read-only] [--ascii] [--theme NAME] [demo …]`."""

from __future__ import annotations

from typing import NamedTuple

SWITCHES = {"--read-only": "read_only", "--ascii": "ascii"}
VALUED = {"-c": "cluster", "--cluster": "cluster", "--theme": "theme"}
QUIET = frozenset({"-h", "--help", "-V", "--version", "--headless"})
"""Options with which a command prints and ends."""
DEMO = "demo"

# No Textual here: at a terminal every command is parsed by this first, also those that print and never draw a screen.


class StartOptions(NamedTuple):
    """The parsed command line."""

    flags: dict[str, str | bool | None]
    """Settings by name."""
    demo: list[str] | None
    """The words of the demo, with `demo` itself; None: no demo is to be opened."""


def parse_start_options(words: list[str]) -> StartOptions | None:
    """Parse the words; None where they name a command that prints, or one that the cockpit does not know."""
    # Before the other words are looked at: `cockpit -c lab --help` prints the help as well.
    if QUIET & set(words):
        return None
    flags: dict[str, str | bool | None] = {}
    left: list[str] = []
    coming = iter(words)
    for word in coming:
        option, given, value = word.partition("=")
        if word in SWITCHES:
            flags[SWITCHES[word]] = True
        elif option in VALUED:
            flags[VALUED[option]] = value if given else next(coming, "")
        else:
            # The first of these is a verb or `demo`; what follows `demo` is parsed by the demo itself.
            left.append(word)
    if left and left[0] != DEMO:
        return None
    return StartOptions(flags, left or None)
