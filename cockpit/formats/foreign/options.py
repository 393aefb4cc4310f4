"""Command lines of the kind `tool verb --name=value --flag rest`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


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
        if not equals and name not in flags and left and not left[0].startswith("-"):
            value = left.pop(0)
        options.append((name, value))
    return Line(options, rest)
