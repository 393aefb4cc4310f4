"""Parses the command line: `cockpit [-c CLUSTER] VERB …`.

Nouns (`jobs`, `nodes`) list things; verbs (`submit`, `cancel`) act on them. Only the chosen verb's parser is built.
"""

from __future__ import annotations

import argparse
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from cockpit import __version__
from cockpit.errors import CockpitError
from cockpit.headless.registry import ACTING, VERBS
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.headless.services import Call
    from cockpit.model.ids import JobRef
    from cockpit.model.spec import Dependency

argparse._ = str  # type: ignore[attr-defined]  # its words stay English, as ours are: to look for others loads locale

MINUS_VALUED: Final = frozenset({"--sort", "--filter", "--qos"})
"""Options whose value may begin with a minus."""

STDOUT = 1
USUAL_COLUMNS, WIDEST_HELP = 80, 120
"""Width of the help where there is no terminal, and its greatest width in a wide one."""


class Verb(msgspec.Struct, frozen=True):
    """A command of the command line."""

    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Call], Awaitable[int]]
    examples: tuple[str, ...]
    mixed: bool = False
    """Whether optional positional arguments may also follow options."""
    split: Callable[[Sequence[str]], tuple[list[str], tuple[str, ...]]] | None = None
    """Splits off options of another program, which are parsed as `passed_on`."""


def add_reveal_option(parser: ArgumentParser) -> None:
    """Add `--reveal`, which `main` carries out."""
    parser.add_argument(
        "--reveal", action="store_true", help="show secrets, such as tokens, instead of ***; of your own jobs"
    )


class UsageError(CockpitError):
    """The command line is wrong."""


class TextAsked(Exception):
    """The command line asks for a text (help or version) instead of running a verb."""


class _Help(RawDescriptionHelpFormatter):
    """Help of the terminal's width, found without the imports that argparse would need for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(_terminal_columns(), WIDEST_HELP))


def _terminal_columns() -> int:
    try:
        return os.get_terminal_size(STDOUT).columns or USUAL_COLUMNS
    except OSError:
        return USUAL_COLUMNS


_LESS_TIME: Final = re.compile(r"-[0-9][0-9a-z:.-]*[a-z]")
"""A negative duration such as `-30m`; with a blank before it argparse does not take it for an option."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # Without argparse's own way, which prints the usage and ends the process.
        raise UsageError(f"{message}\nSee: {self.prog} --help")


def parse(argv: Sequence[str]) -> tuple[Verb, Namespace]:
    """Return the verb and its arguments. Raises `UsageError`, and `TextAsked` for --help and --version."""
    words = list(argv)
    # First, since these options may precede the verb, by which the parser is chosen.
    cluster = _take_cluster(words)
    if not words:
        words = ["overview"]
    _answer_without_a_verb(words[0])
    name = _verb_name(words)
    verb = load(name)
    # The words behind `--` never reach argparse, which would take the options of the job's command for its own.
    own, command = _split_command(words[len(name.split()) :])
    own, passed_on = verb.split(own) if verb.split is not None else (own, ())
    # A blank in front, by which argparse takes a negative duration for a value; the durations' parser ignores it.
    own = [f" {word}" if _LESS_TIME.fullmatch(word) else word for word in _join_minus_values(own)]
    parser = verb_parser(name, verb)
    # Before parsing, which would complain about arguments that are missing.
    if {"-h", "--help"} & set(own):
        raise TextAsked(parser.format_help().rstrip())
    # Only where it is needed: it does not support arguments that take all remaining words.
    args = parser.parse_intermixed_args(own) if verb.mixed else parser.parse_args(own)
    args.command_words, args.passed_on = command, passed_on
    args.typed = tuple(_without_request_id(argv))
    # An option behind the verb counts before one in front of it.
    args.cluster = args.cluster or cluster
    return verb, args


def _without_request_id(argv: Sequence[str]) -> Iterator[str]:
    """Yield the words of the command that say what it does; `--request-id` comes only with its repetition."""
    words = iter(argv)
    for word in words:
        if word == "--":
            # What follows is the command of a job, whose words are its own.
            yield from (word, *words)
        elif word == _REQUEST_ID_OPTION:
            next(words, None)
        elif not word.startswith(f"{_REQUEST_ID_OPTION}="):
            yield word


def load(name: str) -> Verb:
    """Import and return the verb of this name."""
    # Late: each verb loads the modules that it needs, and a command should answer within a tenth of a second.
    module, attribute, _ = VERBS[name]
    verb = getattr(import_module(f"cockpit.headless.verbs.{module}"), attribute)
    assert isinstance(verb, Verb)
    return verb


_REQUEST_ID_OPTION: Final = "--request-id"
REQUEST_ID = "your own id for this change: repeating the command with it gives the first answer, and changes nothing"
SHOW_COMMANDS = "on a Slurm cluster: print the commands that would run, and run none"


def verb_parser(name: str, verb: Verb) -> ArgumentParser:
    """Return the parser of one verb; its help ends with examples."""
    parser = _Parser(
        prog=f"cockpit {name}",
        description=VERBS[name][2] + ".",
        epilog="examples:\n" + "\n".join(f"  {example}" for example in verb.examples),
        formatter_class=_Help,
        # An abbreviation that is clear today may be ambiguous with the next option.
        allow_abbrev=False,
        # `parse` answers it, and so without leaving the process.
        add_help=False,
    )
    verb.arguments(parser)
    parser.add_argument("-c", "--cluster", metavar="CLUSTER", help="the cluster to look at")
    parser.add_argument("--show-commands", action="store_true", help=SHOW_COMMANDS)
    if name in ACTING:
        parser.add_argument(_REQUEST_ID_OPTION, type=request_id, metavar="ID", help=REQUEST_ID)
    parser.add_argument("-h", "--help", action="store_true", help="show this")
    return parser


def no_options(_: ArgumentParser) -> None:
    """Add no options, for a verb that has none of its own."""


def usage() -> str:
    """Return the help of the whole command."""
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {name:<{width}}{summary}" for name, (_, _, summary) in VERBS.items())
    return (
        "usage: cockpit [-c CLUSTER] [--read-only] [--ascii] [--theme NAME]   opens the cockpit in a terminal\n"
        "       cockpit [-c CLUSTER] VERB …\n\n"
        f"{verbs}\n\n"
        "Help of a verb: cockpit VERB --help\n\n"
        "examples:\n"
        "  cockpit submit job.yaml\n"
        "  cockpit jobs --filter 'state:failed user:me' -o json\n"
        "  cockpit shell 4715"
    )


def reference(text: str) -> JobRef:
    """Parse an argument that names a job."""
    from cockpit.present.references import parse_reference

    ref = parse_reference(text)
    if ref is None:
        raise ArgumentTypeError(f"{safe(text)} is no job: write its id, such as 4711, or its name")
    return ref


def field(text: str) -> tuple[str, str]:
    """Parse an argument of the form `Field=value`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{safe(text)} is no field with its value, such as Nice=50")
    return name, value


def seconds(text: str) -> int:
    """Parse a duration; return it in seconds."""
    from cockpit.model.quantity import parse_duration

    return _number(parse_duration(text))


def mebibytes(text: str) -> int:
    """Parse an amount of memory; return it in MiB."""
    from cockpit.model.quantity import parse_memory

    return _number(parse_memory(text))


def conditions(text: str) -> tuple[Dependency, ...]:
    """Parse conditions on other jobs, written like `dependencies` in a job file."""
    from cockpit.formats.job.conditions import Dependencies
    from cockpit.formats.kinds import Reading

    reading = Reading("/", "")
    dependencies = Dependencies().read(text, "", reading)
    if reading.errors:
        raise ArgumentTypeError(reading.errors[0])
    return dependencies


def _number(parsed: int | str) -> int:
    """Return the number; a string is the error message of its parser."""
    if isinstance(parsed, str):
        raise ArgumentTypeError(parsed)
    return parsed


def request_id(text: str) -> str:
    """Check an argument that is a request id."""
    from cockpit.model.requests import LONGEST_REQUEST_ID, is_request_id

    if not is_request_id(text):
        raise ArgumentTypeError(
            f"{safe(text[:LONGEST_REQUEST_ID])} is no request id: 1 to {LONGEST_REQUEST_ID} ASCII letters, digits and "
            "._:/@+=-, the first a letter or a digit"
        )
    return text


def known_request(text: str) -> str:
    """Check an argument that names a request, or the second change `ID#2` (and so on) of one command."""
    from cockpit.model.requests import names_request

    # What is wrong with it `request_id` says.
    return text if names_request(text) else request_id(text)


def count(text: str) -> int:
    """Parse a number of things."""
    from cockpit.model.text import MOST_DIGITS, whole

    number = whole(text)
    if number is None:
        raise ArgumentTypeError(f"{safe(text[:40])} is not a whole number of at most {MOST_DIGITS} digits")
    return number


def _take_cluster(words: list[str]) -> str | None:
    cluster = None
    while words and words[0].partition("=")[0] in {"-c", "--cluster"}:
        option, given, value = words.pop(0).partition("=")
        # Without a value it is the last word, so the cluster is missing.
        if not given and not words:
            raise UsageError(f"{option} wants the name of a cluster")
        cluster = value if given else words.pop(0)
    return cluster


def _answer_without_a_verb(word: str) -> None:
    if word in {"-h", "--help", "help"}:
        raise TextAsked(usage())
    if word in {"-V", "--version"}:
        raise TextAsked(f"cockpit {__version__}")


def _verb_name(words: Sequence[str]) -> str:
    # A verb of two words first: `nodes drain` is not `nodes` with an argument.
    for name in (" ".join(words[:2]), words[0]):
        if name in VERBS:
            return name
    if words[0].startswith("-"):
        raise UsageError(
            f"{safe(words[0])} is not an option of every verb; write it after the verb\nAll verbs: cockpit --help"
        )
    hint = nearest(words[0], VERBS)
    raise UsageError(
        f"there is no verb {safe(words[0])}"
        + (f"; did you mean {hint}?" if hint else "")
        + "\nAll verbs: cockpit --help"
    )


def _join_minus_values(words: Sequence[str]) -> list[str]:
    """Write `--sort -name` as `--sort=-name`, because argparse would take the value for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in MINUS_VALUED:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _split_command(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the words before `--` and the command after it."""
    if "--" not in words:
        return list(words), ()
    at = words.index("--")
    return list(words[:at]), tuple(words[at + 1 :])
