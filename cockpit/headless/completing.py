"""Completes a command line, using the parser that would read the command."""

from __future__ import annotations

from argparse import ONE_OR_MORE, REMAINDER, ZERO_OR_MORE, Action, ArgumentParser
from collections.abc import Sequence
from typing import Final, NamedTuple

from cockpit.headless.arguments import load, verb_parser
from cockpit.headless.registry import VERBS

BEFORE_A_VERB: Final = {
    "--cluster": "the cluster to look at",
    "--read-only": "look at everything and change nothing",
    "--ascii": "draw with ASCII signs alone",
    "--theme": "other colours",
    "--help": "show this",
    "--version": "which cockpit this is",
}
"""Options of the whole command, and what they are."""
_VALUED: Final = {
    "-c": Action(("-c",), "cluster", metavar="CLUSTER"),
    "--cluster": Action(("--cluster",), "cluster", metavar="CLUSTER"),
    "--theme": Action(("--theme",), "theme", metavar="THEME"),
}
_MANY: Final = (ONE_OR_MORE, ZERO_OR_MORE)


class Completion(NamedTuple):
    """A word that may follow, and what it is."""

    word: str
    about: str = ""


class Place(NamedTuple):
    """The possible meanings of the word that is being typed."""

    cluster: str | None
    verb: str = ""
    """The verb; empty: none so far."""
    words: tuple[str, ...] = ()
    """The words behind the verb."""
    verbs: tuple[Completion, ...] = ()
    arguments: tuple[Action, ...] = ()
    """The arguments that may have a value here."""
    options: tuple[Completion, ...] = ()


def place_behind(words: Sequence[str]) -> Place:
    """Return the place after these words of a command, all of which are whole; `cockpit` itself is not among them."""
    left, cluster = list(words), None
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in _VALUED and not left:
            return Place(None, arguments=(_VALUED[option],))
        value = left.pop(0) if option in _VALUED else ""
        # The theme takes a value too, which is not a cluster.
        cluster = cluster if option == "--theme" else value or cluster
    if not left:
        return Place(cluster, verbs=_verbs(""), options=tuple(Completion(*each) for each in BEFORE_A_VERB.items()))
    # A verb of two words first, as the command's own parser does it.
    name = next((each for each in (" ".join(left[:2]), left[0]) if each in VERBS), "")
    return _place_in(name, left[len(name.split()) :], cluster) if name else Place(cluster)


def _verbs(noun: str) -> tuple[Completion, ...]:
    """Return the words after a noun that has verbs of its own; without a noun, every first word."""
    behind = [name.split() for name in VERBS if name.startswith(f"{noun} " if noun else "")]
    depth = len(noun.split()) + 1
    return tuple(Completion(words[-1], VERBS[" ".join(words)][2]) for words in behind if len(words) == depth)


def _place_in(name: str, words: list[str], cluster: str | None) -> Place:
    reading = _Reading(verb_parser(name, load(name)))
    for number, word in enumerate(words):
        reading.take(word)
        # The rest is a command of its own (`demo --headless VERB …`).
        if reading.option is not None and reading.option.nargs == REMAINDER:
            return place_behind(words[number + 1 :])
    # An option of the verb counts before one in front of it.
    cluster = reading.cluster or cluster
    if reading.option is not None:
        return Place(cluster, name, tuple(words), arguments=(reading.option,))
    verbs, options = () if words else _verbs(name), map(_option, reading.options_left())
    return Place(cluster, name, tuple(words), verbs, tuple(reading.positionals_next()), tuple(options))


def _option(action: Action) -> Completion:
    # argparse's help may contain `%(prog)s`, and doubles every other percent sign.
    return Completion(action.option_strings[-1], str(action.help) % {"prog": "cockpit"})


class _Reading:
    """Assigns words to the arguments that take them, without checking any."""

    def __init__(self, parser: ArgumentParser) -> None:
        self._arguments = parser._actions  # noqa: SLF001 - argparse tells of them nowhere else
        self._positionals = [each for each in self._arguments if not each.option_strings]
        self._given_options: set[str] = set()
        self._one_of_many = False
        self.option: Action | None = None
        """Whose value comes next."""
        self.cluster: str | None = None

    def take(self, word: str) -> None:
        if self.option is not None:
            self._value(self.option, word)
        elif word.startswith("-") and word != "-":
            self._begin(*word.partition("="))
        elif self._positionals:
            self._one_of_many = self._positionals[0].nargs in _MANY
            # An argument of any number takes further words, so it stays the first.
            self._positionals = self._positionals[not self._one_of_many :]

    def _begin(self, name: str, equals: str, value: str) -> None:
        action = next((each for each in self._arguments if name in each.option_strings), None)
        if action is not None:
            self._given_options.add(action.dest)
            # A flag has no value that could come next.
            self.option = action if action.nargs != 0 else None
            # `--cluster=lab`: the value has come already.
            if equals:
                self._value(action, value)

    def _value(self, option: Action, word: str) -> None:
        self.cluster = word if option.dest == "cluster" else self.cluster
        self.option = None

    def positionals_next(self) -> list[Action]:
        """Return the positional arguments that may come next. An argument of any number may be followed by the next
        one."""
        return self._positionals[: 1 + self._one_of_many]

    def options_left(self) -> list[Action]:
        return [each for each in self._arguments if each.option_strings and each.dest not in self._given_options]
