"""Splits the command line of a program: a text into words, and words of the kind `tool verb --name=value --flag rest`
into options and the rest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from itertools import dropwhile, takewhile
from typing import Final, NamedTuple

from cockpit.formats.foreign.draft import Draft
from cockpit.launch.lexer import Literal, NotSimple, Part, Variable, lex
from cockpit.model.text import visible

_BETWEEN_COMMANDS: Final = re.compile(r"[;&|\n]+")
_EXPANSION: Final = re.compile(r"\$(?:\w+|\{[^}]*\}|\([^()]*\)|[@*#?$!-])|`[^`]*`", re.ASCII)
_BLANK_BEHIND: Final = re.compile(r"\\[ \t]+\n")


def command_line(text: str) -> tuple[list[str], str]:
    """Return the words of a text's first command, as a shell splits it, and the text behind it. Comments above it are
    skipped, and a shell's expansions are left as they are. Raises ValueError if a quote is not closed.

    A continued line is recognised as such also where copying put a blank behind its `\\`, or lost its end.
    """
    words, rest = _split(_BLANK_BEHIND.sub("\\\\\n", text))
    return [word.lstrip(" ") for word in words], rest


def _split(text: str) -> tuple[list[str], str]:
    """Return the words of the first command in a text, and the rest of the text."""
    # Manuals print a prompt before commands.
    line = "\n".join(_without_comments(text)).strip().removeprefix("$ ")
    if line.endswith("\\") and not line.endswith("\\\\"):  # a continued line that nothing follows
        line = line[:-1].rstrip()
    # The lexer of job files first: it knows the variables that stay. A text with pipes or redirections is none for it,
    # and of such a text only the first command is read.
    words = lex(line)
    if not isinstance(words, NotSimple):
        return ["".join(map(_as_written, word.parts)) for word in words], ""
    # No commenters: shlex takes a `#` in the middle of a word for a comment, which a shell does not.
    reader = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=";&|\n")
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    first = list(takewhile(lambda word: not _BETWEEN_COMMANDS.fullmatch(word), reader))
    return first, " ".join(reader)


def _as_written(part: Part) -> str:
    if isinstance(part, Literal):
        return part.text
    return f"${{{part.name}}}" if isinstance(part, Variable) else f"$(({part.text}))"


def refuse_expansions(text: str, options: Iterable[tuple[str, str]], draft: Draft) -> None:
    """Refuse each option with a value that a shell would have replaced: no shell reads the line here, and
    `$NAME` itself is never meant. `text`: the line with its quotes, of which single ones keep what is in them."""
    expansions = _expansions("\n".join(_without_comments(text)))
    for name, value in options:
        # A word has `${NAME}` for both ways to write a variable, and ends at a blank of an expansion.
        found = (each for each in expansions if each.split()[0] in value or f"${{{each[1:]}}}" in value)
        if expansion := next(found, None):
            draft.refuse(
                f"--{name}={value}",
                f"a shell would replace {visible(expansion)}, and none reads this line; write the value, or fill in "
                "variables by `envsubst < FILE | cockpit submit -`",
            )


def _expansions(text: str) -> list[str]:
    """Return what a shell would replace: variables and the output of commands, outside single quotes."""
    found: list[str] = []
    quote, at = "", 0
    while at < len(text):
        match = _EXPANSION.match(text, at) if quote != "'" else None
        if match is not None:
            found.append(match[0])
            at = match.end()
            continue
        if text[at] == "\\" and quote != "'":
            # An escaped character is text.
            at += 1
        elif text[at] in "'\"" and quote in {"", text[at]}:
            quote = "" if quote else text[at]
        at += 1
    return found


def _without_comments(text: str) -> list[str]:
    """Return the lines from the first one on that is neither blank nor a comment."""
    return list(dropwhile(lambda line: not line.strip() or line.lstrip().startswith("#"), text.split("\n")))


class Line(NamedTuple):
    options: list[tuple[str, str]]
    """Name without its dashes, and value; empty where it has none."""
    rest: list[str]


def read_line(words: Sequence[str], flags: Collection[str] = ()) -> Line:
    """Split a command line into options and words. `flags`: options without a value; any other option takes the text
    behind `=`, or the next word."""
    options: list[tuple[str, str]] = []
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            rest += left
            break
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        # A following option is no value, so that an unknown flag does not swallow it.
        if not equals and name not in flags and left and not left[0].startswith("-"):
            value = left.pop(0)
        options.append((name, value))
    return Line(options, rest)
